from boardlift_transform.build_test_models import elu_policy
from boardlift_transform.convert_diff import MAX_NODES, graph_diff
from boardlift_transform.diff_graph import GraphDiff, NodeView, Rewrite
from boardlift_transform.transform_model import transform


def _node(index: int, width: int = 2) -> NodeView:
    names = tuple(f"{'v' * 300}{i}" for i in range(width))
    return NodeView(f"n{index}", "Add", names, ("y",), {f"a{i}": "x" * 300 for i in range(40)}, "[1, 2]", "pass")


def test_a_pass_shows_its_nodes() -> None:
    result = transform(elu_policy((9, 8, 7), 3), diff=True)
    lifted = next(r.diff for r in result.passes if r.id == "lift-to-4d" and r.diff is not None)
    message = graph_diff(lifted)
    assert [v.name for v in message.added] == [v.name for v in lifted.added]
    assert "Conv" in {r.after.operator for r in message.rewritten} | {v.operator for v in message.added}
    assert message.left_out == 0


def test_a_huge_diff_is_bounded_and_says_so() -> None:
    many = tuple(_node(i, 500) for i in range(5000))
    message = graph_diff(GraphDiff(many, many, tuple(Rewrite(v, v, ("operator",)) for v in many)))
    assert len(message.added) == len(message.removed) == len(message.rewritten) == MAX_NODES
    assert message.left_out == 3 * (5000 - MAX_NODES)
    assert message.ByteSize() < 1 << 19
