import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def chain(shape: list[int], *moves: tuple[str, list[int]], tail: str = "Relu") -> onnx.ModelProto:
    """Relu, the moves, and an operator behind them."""
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", shape)])
    for kind, given in moves:
        if kind == "Reshape":
            t = b.node(kind, [t, b.constant(given)])
        else:
            t = b.node(kind, [t], **{"perm" if kind == "Transpose" else "axes": given})
    b.node(tail, [t], "y")
    b.output("y")
    return b.model()


HEADS = ([1, 8, 1, 5], ("Transpose", [0, 2, 3, 1]), ("Reshape", [1, 5, 4, 2]))


@pytest.mark.parametrize(
    ("model", "left"),
    [
        (chain(*HEADS, ("Transpose", [0, 2, 1, 3])), ["Reshape", "Transpose"]),
        (chain(*HEADS, ("Transpose", [0, 2, 3, 1])), ["Reshape"]),
        (
            chain([1, 4, 5, 2], ("Transpose", [0, 2, 1, 3]), ("Reshape", [1, 1, 5, 8]), ("Transpose", [0, 3, 1, 2])),
            ["Transpose", "Reshape"],
        ),
        (chain([1, 6, 4], ("Unsqueeze", [0]), ("Transpose", [0, 1, 3, 2]), ("Squeeze", [0])), ["Transpose"]),
        (chain([1, 2, 3, 4], ("Transpose", [0, 2, 3, 1]), ("Transpose", [0, 3, 1, 2])), []),
    ],
)
def test_a_chain_becomes_the_fewest_moves(model: onnx.ModelProto, left: list[str]) -> None:
    run = run_one_pass(model, "merge-moves")
    assert [o for o in run.operators if o != "Relu"] == left
    assert run.max_rel == 0


@pytest.mark.parametrize(
    "model",
    [
        chain([1, 8, 6, 5], ("Reshape", [1, 2, 4, 30]), ("Transpose", [0, 2, 1, 3])),
        chain([1, 16, 3], ("Reshape", [1, 4, 4, 3]), ("Transpose", [0, 2, 3, 1])),
        chain([1, 6, 10], ("Transpose", [0, 2, 1]), ("Reshape", [1, 4, 15])),
        chain([1, 2, 3, 4], ("Transpose", [0, 2, 3, 1])),
    ],
)
def test_what_is_short_or_cannot_be_followed_stays(model: onnx.ModelProto) -> None:
    run = run_one_pass(model, "merge-moves")
    assert not run.result.applied
    assert run.operators == [n.op_type for n in model.graph.node]


def test_moves_that_others_read_stay_for_them() -> None:
    b = GraphBuilder(11)
    t = b.node("Transpose", [b.node("Relu", [b.input("x", [1, 8, 1, 5])])], perm=[0, 2, 3, 1])
    b.node("Relu", [t], "side")
    t = b.node("Transpose", [b.node("Reshape", [t, b.constant([1, 5, 4, 2])])], perm=[0, 2, 3, 1])
    b.node("Relu", [t], "y")
    b.output("side")
    b.output("y")
    run = run_one_pass(b.model(), "merge-moves")
    assert sorted(o for o in run.operators if o != "Relu") == ["Reshape", "Transpose"]
    assert run.max_rel == 0


def test_an_output_keeps_its_name() -> None:
    b = GraphBuilder(11)
    t = b.node("Transpose", [b.node("Relu", [b.input("x", [1, 2, 3, 4])])], perm=[0, 2, 3, 1])
    b.node("Transpose", [t], "y", perm=[0, 3, 1, 2])
    b.output("y", [1, 2, 3, 4])
    run = run_one_pass(b.model(), "merge-moves")
    assert [o.name for o in run.model.graph.output] == ["y"]
    assert run.max_rel == 0
