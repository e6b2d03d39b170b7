import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.edit_graph import Array
from boardlift_transform.quantised_values import FLOATS, along_axis, dequantise, fake_quantise

RNG = np.random.default_rng(0)


def _runtime(x: Array, scale: Array, zero: Array, axis: int, opset: int = 21, **attributes: int) -> Array:
    """DequantizeLinear in onnxruntime."""
    b = GraphBuilder(opset, ir_version=10)
    name = b.input("x", x.shape, TensorProto.INT8)
    b.node("DequantizeLinear", [name, b.constant(scale), b.constant(zero)], "y", axis=axis, **attributes)
    b.output("y", x.shape)
    session = onnxruntime.InferenceSession(b.model().SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize(("shape", "axis"), [((), 1), ((3,), 0), ((4,), 1), ((5,), -1)])
def test_scales_along_an_axis_as_onnxruntime_has_them(shape: tuple[int, ...], axis: int) -> None:
    x = RNG.integers(-128, 128, (3, 4, 5)).astype(np.int8)
    scale = RNG.uniform(0.01, 0.1, shape).astype(np.float32)
    zero = RNG.integers(-20, 20, shape).astype(np.int8)
    assert np.array_equal(dequantise(x, scale, zero, axis), _runtime(x, scale, zero, axis))


def test_blocks_as_onnxruntime_has_them() -> None:
    x = RNG.integers(-128, 128, (4, 8)).astype(np.int8)
    scale, zero = RNG.uniform(0.01, 0.1, (4, 2)).astype(np.float32), RNG.integers(-20, 20, (4, 2)).astype(np.int8)
    assert np.array_equal(dequantise(x, scale, zero, 1, 4), _runtime(x, scale, zero, 1, block_size=4))


def test_fake_quantised_values_lie_on_the_steps_and_within_half_a_step() -> None:
    x = RNG.uniform(-1.2, 1.2, 200).astype(np.float32)
    scale, zero = np.asarray(0.01, np.float32), np.asarray(0, np.int8)
    made = fake_quantise(x, scale, zero, ir.DataType.INT8)
    inside = np.abs(x) < 1.27
    assert np.max(np.abs(made - x)[inside]) <= 0.005 + 1e-6
    assert np.allclose(made / 0.01, np.rint(made / 0.01), atol=1e-4)


def test_scales_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(ValueError, match="along axis"):
        along_axis(np.ones((2, 2)), 3, 1)


@pytest.mark.parametrize("kind", [k for k in FLOATS if k != ir.DataType.FLOAT4E2M1], ids=lambda k: k.name)
def test_narrow_floats_round_as_onnxruntime_does(kind: ir.DataType) -> None:
    x = (RNG.standard_normal(400) * 10.0 ** RNG.uniform(-4, 6, 400)).astype(np.float32)
    b, scale = GraphBuilder(19, ir_version=9), np.asarray(0.02, np.float32)
    zero = ir.to_proto(ir.Tensor(np.zeros((), kind.numpy()), name="zero"))
    b.weights.append(zero)
    numbers = [b.constant(scale), "zero"]
    b.node("DequantizeLinear", [b.node("QuantizeLinear", [b.input("x", x.shape), *numbers]), *numbers], "y")
    b.output("y", x.shape)
    session = onnxruntime.InferenceSession(b.model().SerializeToString(), providers=["CPUExecutionProvider"])
    made = fake_quantise(x, scale, np.zeros((), np.float32), kind)
    assert np.array_equal(made, session.run(None, {"x": x})[0])
