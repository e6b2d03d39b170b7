import numpy as np
import onnx
import onnx_ir as ir
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.cut_projection import cut_projection
from boardlift_transform.edit_graph import Editor
from boardlift_transform.equivalence import Session

FORMS = ["MatMul", "MatMulAdd", "AddMatMul", "ScalarAdd", "Gemm", "GemmTransposed", "Conv"]


def joint(form: str) -> tuple[ir.Model, int]:
    """A projection to 6 channels as output `y`, and the axis of the channels."""
    b = GraphBuilder(11)
    if form == "Conv":
        b.node("Conv", [b.input("x", [1, 4, 2, 3]), b.weight(6, 4, 1, 1), b.weight(6)], "y")
    elif form.startswith("Gemm"):
        turned = form == "GemmTransposed"
        weight = b.weight(6, 4) if turned else b.weight(4, 6)
        b.node("Gemm", [b.input("x", [5, 4]), weight, b.weight(1, 6)], "y", transB=int(turned), alpha=0.5)
    else:
        t = b.node("MatMul", [b.input("x", [1, 5, 4]), b.weight(4, 6)], "y" if form == "MatMul" else "t")
        bias = b.constant(np.float32(0.3)) if form == "ScalarAdd" else b.weight(6)
        if form != "MatMul":
            b.node("Add", [bias, t] if form == "AddMatMul" else [t, bias], "y")
    b.output("y")
    return ir.from_proto(onnx.shape_inference.infer_shapes(b.model())), 1 if form == "Conv" else -1


def run(model: ir.Model, value: ir.Value | None) -> list[np.ndarray]:
    """The joint output, and the part."""
    assert value is not None
    value.name = "part"
    model.graph.outputs.append(value)
    x = model.graph.inputs[0]
    feed = {"x": np.random.default_rng(1).standard_normal([int(d) for d in x.shape or ()]).astype(np.float32)}
    made = ir.to_proto(model)
    onnx.checker.check_model(made, full_check=True)
    got = Session(made.SerializeToString()).run(feed)
    return [got["y"], got["part"]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [[2, 3], [1, 4], [5, 0, 2]])
def test_rows_of_the_weights_make_the_part(form: str, rows: list[int]) -> None:
    model, axis = joint(form)
    y = model.graph.outputs[0]
    anchor = ir.Node("", "Identity", [y], name="anchor")
    model.graph.append(anchor)
    at = axis % len(y.shape or ())
    value = cut_projection(y, at, np.asarray(rows), anchor, Editor(model.graph, "test"), own=True)
    model.graph.remove(anchor, safe=True)
    whole, part = run(model, value)
    assert np.abs(whole.take(rows, axis) - part).max() < 1e-6
    assert "Slice" not in {n.op_type for n in model.graph}


def test_what_others_read_is_sliced_where_it_is_in_one_piece() -> None:
    model, _ = joint("MatMulAdd")
    y = model.graph.outputs[0]
    anchor = ir.Node("", "Identity", [y], name="anchor")
    model.graph.append(anchor)
    editor = Editor(model.graph, "test")
    assert cut_projection(y, 2, np.asarray([1, 3]), anchor, editor, own=False) is None
    value = cut_projection(y, 2, np.asarray([2, 3, 4]), anchor, editor, own=False)
    model.graph.remove(anchor, safe=True)
    whole, part = run(model, value)
    assert (whole[..., 2:5] == part).all()


@pytest.mark.parametrize("form", ["tokens", "grouped"])
def test_another_axis_and_a_grouped_convolution_are_no_projection(form: str) -> None:
    b = GraphBuilder(11)
    if form == "tokens":
        b.node("MatMul", [b.input("x", [1, 6, 4]), b.weight(4, 6)], "y")
    else:
        b.node("Conv", [b.input("x", [1, 4, 2, 3]), b.weight(6, 2, 1, 1)], "y", group=2)
    b.output("y")
    model = ir.from_proto(onnx.shape_inference.infer_shapes(b.model()))
    anchor = ir.Node("", "Identity", [model.graph.outputs[0]], name="anchor")
    model.graph.append(anchor)
    y, editor = model.graph.outputs[0], Editor(model.graph, "test")
    assert cut_projection(y, 1, np.asarray([0, 2]), anchor, editor, own=True) is None
