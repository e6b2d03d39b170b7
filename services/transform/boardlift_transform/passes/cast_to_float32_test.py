import numpy as np
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize(("numpy_type", "onnx_type", "limit"), [("float16", 10, 1e-2), ("float64", 11, 1e-6)])
def test_other_floats_become_float32(numpy_type: str, onnx_type: int, limit: float) -> None:
    b = GraphBuilder(17)
    x = b.input("x", [1, 8], onnx_type)
    w = b.constant(b.rng.standard_normal((8, 4)).astype(numpy_type))
    b.node("Sigmoid", [b.node("MatMul", [x, w])], "y")
    b.output("y", [1, 4], onnx_type)
    run = run_one_pass(b.model(), "cast-to-float32")
    assert run.model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert {w.data_type for w in run.model.graph.initializer} == {TensorProto.FLOAT}
    assert run.max_rel < limit


def test_casts_and_constant_attributes_follow() -> None:
    b = GraphBuilder(17)
    t = b.node("Cast", [b.input("x", [1, 4])], to=TensorProto.DOUBLE)
    t = b.node("Mul", [t, b.constant(np.asarray([0.1], np.float64))])
    b.node("Cast", [t], "y", to=TensorProto.FLOAT)
    b.output("y", [1, 4])
    run = run_one_pass(b.model(), "cast-to-float32")
    assert all(a.i == TensorProto.FLOAT for n in run.model.graph.node for a in n.attribute if a.name == "to")
    assert run.max_rel < 1e-6


def test_a_constant_beyond_float32_is_refused() -> None:
    b = GraphBuilder(17)
    t = b.node("Cast", [b.input("x", [1, 4])], to=TensorProto.DOUBLE)
    b.node("Add", [t, b.constant(np.asarray([1e300]))], "y")
    b.output("y", [1, 4], TensorProto.DOUBLE)
    with pytest.raises(Refusal) as caught:
        run_one_pass(b.model(), "cast-to-float32")
    assert caught.value.reason == "CONSTANT_TOO_LARGE"
