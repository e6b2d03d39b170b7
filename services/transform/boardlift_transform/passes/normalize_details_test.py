import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.load_model import load_model
from boardlift_transform.passes.normalize_details import PASS
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform


def test_rank_one_clip_bounds_become_scalars() -> None:
    b = GraphBuilder(11)
    low, high = (b.constant(np.asarray(v, np.float32)) for v in (-0.5, 0.5))
    t = b.node("Clip", [b.input("x", [1, 6]), low, high])
    b.node("Relu", [t], "y")
    b.output("y", [1, 6])
    model = b.model()
    for weight in model.graph.initializer:
        weight.dims.append(1)  # onnx refuses this; exporters write it all the same
    working = load_model(model).to_ir()
    PASS.apply(working, {})
    assert [len(v.shape or ()) for v in next(iter(working.graph)).inputs[1:] if v is not None] == [0, 0]


def test_node_names_become_unique() -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", [1, 6])])
    b.node("Sigmoid", [b.node("Tanh", [t])], "y")
    b.output("y", [1, 6])
    model = b.model()
    model.graph.node[0].name = model.graph.node[1].name = "same"
    model.graph.node[2].name = ""
    working = load_model(model).to_ir()
    PASS.apply(working, {})
    assert [n.name for n in working.graph] == ["same", "same_1", "Sigmoid_2"]


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("size", [7, 8])
def test_auto_pad_becomes_explicit(mode: str, size: int) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 3, size, size])
    t = b.node("Conv", [x, b.weight(4, 3, 3, 3)], auto_pad=mode, strides=[2, 2])
    b.node("MaxPool", [t], "y", auto_pad=mode, kernel_shape=[2, 2])
    b.output("y", None)
    run = run_one_pass(b.model(), "normalize-details")
    assert not any(a.name == "auto_pad" for n in run.model.graph.node for a in n.attribute)
    assert run.max_rel == 0


def test_axis_of_cumsum_becomes_int32() -> None:
    b = GraphBuilder(11)
    b.node("CumSum", [b.input("x", [1, 6]), b.constant(np.asarray(1))], "y")
    b.output("y", [1, 6])
    run = run_one_pass(b.model(), "normalize-details")
    assert {numpy_helper.to_array(w).dtype for w in run.model.graph.initializer} == {np.dtype(np.int32)}
    assert run.max_rel == 0


def test_a_gather_from_bools_gathers_floats() -> None:
    b = GraphBuilder(11)
    ids = b.node("ArgMax", [b.input("x", [1, 6])], axis=1)
    b.node("Gather", [b.constant(np.asarray([True, False] * 3)), ids], "y")
    b.output("y", [1, 1], TensorProto.BOOL)
    run = run_one_pass(b.model(), "normalize-details")
    assert run.operators == ["ArgMax", "Gather", "Cast"]
    assert run.max_rel == 0


def test_a_gather_of_computed_bools_gathers_floats() -> None:
    b = GraphBuilder(11)
    bools = b.node("Greater", [b.input("x", [1, 6]), b.constant(np.float32(0))])
    taken = b.node("Gather", [bools, b.constant([3, 1])], axis=1)
    b.node("Where", [taken, b.constant(np.float32(1)), b.constant(np.float32(2))], "y")
    b.output("y", [1, 2])
    run = run_one_pass(b.model(), "normalize-details")
    assert run.operators == ["Greater", "Cast", "Gather", "Cast", "Where"] and run.max_rel == 0


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pads"),
    [
        (12, 1, 3, [0, 0]),
        (12, 2, 3, [1, 1]),
        (11, 3, 2, [0, 1]),
        (10, 3, 2, [1, 1]),
        (9, 2, 2, [0, 0]),
        (8, 2, 3, [1, 0]),
    ],
)
def test_ceil_mode_keeps_the_windows_of_the_runtime(
    operator: str, size: int, kernel: int, stride: int, pads: list[int]
) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 3, size])
    b.node(operator, [x], "y", kernel_shape=[kernel], strides=[stride], pads=pads, ceil_mode=1)
    b.output("y", ["n", "c", "s"])
    result = transform(b.model())
    assert not any(a.name == "ceil_mode" and a.i for n in result.model.graph.node for a in n.attribute)
    assert result.proof.passed
