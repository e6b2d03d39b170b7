import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_shape_arithmetic_of_an_exported_flatten_folds_to_one_reshape() -> None:
    b = GraphBuilder()
    x = b.input("x", ["N", 3, 4])
    n = b.node("Gather", [b.node("Shape", [x]), b.constant(np.asarray(0))], axis=0)
    dims = b.node(
        "Concat", [b.node("Unsqueeze", [n, b.constant(np.asarray([0]))]), b.constant(np.asarray([-1]))], axis=0
    )
    b.node("Reshape", [x, dims], "y")
    b.output("y", ["N", 12])
    run = run_one_pass(b.model(), "fold-constants")
    assert run.operators == ["Reshape"]
    assert run.max_rel == 0


def test_if_with_constant_condition_becomes_its_branch() -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(op, ["x"], [f"{name}_out"])], name, [], [out])

    b = GraphBuilder()
    x = b.input("x", [1, 4])
    rank = b.node("Size", [b.node("Shape", [x])])
    condition = b.node("Equal", [rank, b.constant(np.asarray(2))])
    b.node("If", [condition], "y", then_branch=branch("a", "Relu"), else_branch=branch("b", "Neg"))
    b.output("y", [1, 4])
    run = run_one_pass(b.model(), "fold-constants")
    assert run.operators == ["Relu"]
    assert run.max_rel == 0


def test_a_constant_that_would_grow_without_bound_is_left_alone() -> None:
    b = GraphBuilder()
    x = b.input("x", [1])
    big = b.node("Expand", [b.constant(np.ones(1, np.float32)), b.constant(np.asarray([1 << 13, 1 << 13]))])
    b.node("Add", [x, b.node("ReduceMax", [big], keepdims=0)], "y")
    b.output("y", [1])
    run = run_one_pass(b.model(), "fold-constants")
    assert "Expand" in run.operators
    assert sum(len(w.raw_data) for w in run.model.graph.initializer) < 100


def test_constant_graph_output_keeps_a_node() -> None:
    b = GraphBuilder()
    b.node("Relu", [b.input("x", [1, 4])], "y")
    b.node("Neg", [b.constant(np.ones(3, np.float32))], "c")
    b.output("y", [1, 4])
    b.output("c", [3])
    run = run_one_pass(b.model(), "fold-constants")
    assert [o.name for o in run.model.graph.output] == ["y", "c"]
    assert run.max_rel == 0


def test_a_short_time_fourier_transform_is_one_sided_by_default() -> None:
    b = GraphBuilder(17)
    step, window = b.constant(np.asarray(80, np.int64)), b.constant(np.hanning(160).astype(np.float32))
    t = b.node("STFT", [b.input("x", [1, 400, 1]), step, window])
    power = b.node("ReduceSumSquare", [t], axes=[3], keepdims=0)
    b.node("MatMul", [power, b.weight(81, 12)], "y")
    b.output("y", [1, 4, 12])
    assert run_one_pass(b.model(), "fold-constants").max_rel < 1e-5


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_indices_of_elements_may_cover_less_than_the_data(axis: int) -> None:
    b = GraphBuilder(13)
    table = b.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    taken = b.node("GatherElements", [table, b.constant(np.asarray([[2, -1, 0], [1, 1, 2]]))], axis=axis)
    b.node("Add", [b.input("x", [2, 3]), taken], "y")
    b.output("y", [2, 3])
    run = run_one_pass(b.model(), "fold-constants")
    assert run.operators == ["Add"] and run.max_rel == 0
