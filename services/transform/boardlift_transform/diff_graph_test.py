import onnx_ir as ir

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder, elu_policy
from boardlift_transform.diff_graph import diff_graphs, diff_lines, view_graph
from boardlift_transform.edit_graph import Editor


def _relu_then_neg() -> ir.Model:
    b = GraphBuilder(11)
    b.node("Neg", [b.node("Relu", [b.input("x", [1, 4])])], "y")
    b.output("y", [1, 4])
    return ir.from_proto(b.model())


def test_the_same_graph_differs_in_nothing() -> None:
    model = _relu_then_neg()
    assert diff_graphs(view_graph(model.graph), view_graph(model.graph)).is_empty


def test_added_removed_and_rewritten_nodes_are_told_apart() -> None:
    model = _relu_then_neg()
    before = view_graph(model.graph)
    relu, neg = model.graph
    editor = Editor(model.graph, "some-pass")
    made = editor.node(neg, "Tanh", [relu.outputs[0]], [1, 4], hint="new")
    neg.replace_input_with(0, made)
    relu.attributes["alpha"] = ir.AttrFloat32("alpha", 0.5)
    diff = diff_graphs(before, view_graph(model.graph))
    assert [(v.name, v.operator, v.made_by) for v in diff.added] == [("new", "Tanh", "some-pass")]
    assert not diff.removed
    assert [(r.after.name, r.changed) for r in diff.rewritten] == [("/Relu_0", ("alpha",)), ("/Neg_1", ("inputs",))]
    assert diff_lines(diff) == [
        "+ new: Tanh(t0) -> new_out [1x4]  (made by some-pass)",
        "~ /Relu_0: Relu; alpha absent -> 0.5",
        "~ /Neg_1: Neg; inputs (t0) -> (new_out)",
    ]
    assert diff_graphs(view_graph(model.graph), before).removed == diff.added


def test_nameless_and_doubly_named_nodes_are_kept_apart() -> None:
    model = _relu_then_neg()
    for node in model.graph:
        node.name = "twice"
    assert list(view_graph(model.graph)) == ["t0", "y"]
    for node in model.graph:
        node.name = None
    assert list(view_graph(model.graph)) == ["t0", "y"]


def test_long_diffs_say_how_much_is_left_out() -> None:
    views = view_graph(_relu_then_neg().graph)
    lines = diff_lines(diff_graphs({}, views), limit=1)
    assert len(lines) == 2 and lines[1].endswith("... and 1 more")


def test_every_pass_that_changed_something_shows_it_in_the_result() -> None:
    result = transform(elu_policy(), outputs=["actions"], diff=True)
    by_pass = {report.id: report.diff for report in result.passes if report.diff and not report.diff.is_empty}
    lifted = by_pass["lift-to-4d"]
    assert lifted is not None
    assert {v.made_by for v in lifted.added} | {r.after.made_by for r in lifted.rewritten} >= {"lift-to-4d"}
    assert any(r.before.operator == "Gemm" and r.after.operator == "Conv" for r in lifted.rewritten)
    assert transform(elu_policy(), outputs=["actions"]).passes[0].diff is None


def test_nodes_of_the_opset_downgrade_name_it() -> None:
    b = GraphBuilder(20)
    b.node("Gelu", [b.input("x", [1, 4])], "y")
    b.output("y", [1, 4])
    result = transform(b.model(), diff=True)
    diff = next(r.diff for r in result.passes if r.id == "downgrade-opset")
    assert diff is not None and diff.added and {v.made_by for v in diff.added} == {"downgrade-opset"}
