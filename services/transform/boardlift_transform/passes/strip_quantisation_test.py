import numpy as np
import onnx
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.edit_graph import Array
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform

STEP = 0.02


def _numbers(b: GraphBuilder, step: float = STEP, zero: int = 0, kind: type = np.int8) -> list[str]:
    return [b.constant(np.asarray(step, np.float32)), b.constant(np.asarray(zero, kind))]


def _pair(b: GraphBuilder, x: str, *moves: tuple[str, dict[str, object]], out: str = "", zero: int = 0) -> str:
    """x quantised, moved as whole numbers, dequantised."""
    numbers = _numbers(b, zero=zero)
    t = b.node("QuantizeLinear", [x, *numbers])
    for op, attributes in moves:
        t = b.node(op, [t], **attributes)
    return b.node("DequantizeLinear", [t, *numbers], out)


def _samples(*shape: int, name: str = "x") -> list[dict[str, Array]]:
    return [{name: np.random.default_rng(i).uniform(-4, 4, shape).astype(np.float32)} for i in range(4)]


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_a_pair_is_a_clip_and_within_half_a_step(opset: int) -> None:
    b = GraphBuilder(opset, ir_version=5 if opset == 10 else 8)
    _pair(b, b.input("x", [1, 64]), out="y")
    b.output("y", [1, 64])
    run = run_one_pass(b.model(), "strip-quantisation", samples=_samples(1, 64))
    assert run.operators == ["Clip"]
    assert 0 < run.comparisons[0].max_abs <= STEP / 2 + 1e-6


def test_a_relu_that_the_quantiser_dropped_stays() -> None:
    b = GraphBuilder(13)
    _pair(b, b.input("x", [1, 64]), out="y", zero=-128)
    b.output("y", [1, 64])
    run = run_one_pass(b.model(), "strip-quantisation", samples=_samples(1, 64))
    assert run.comparisons[0].max_abs <= STEP / 2 + 1e-6


def test_whole_numbers_that_are_only_moved() -> None:
    b = GraphBuilder(13)
    pool = ("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})
    _pair(b, b.input("x", [1, 2, 6, 6]), pool, ("Transpose", {"perm": [0, 2, 3, 1]}), out="y")
    b.output("y", [1, 6, 6, 2])
    run = run_one_pass(b.model(), "strip-quantisation", samples=_samples(1, 2, 6, 6))
    assert run.operators == ["Clip", "MaxPool", "Transpose"]
    assert run.comparisons[0].max_abs <= STEP / 2 + 1e-6


def test_the_same_range_is_not_clipped_twice() -> None:
    b = GraphBuilder(13)
    first = _pair(b, b.input("x", [1, 8]))
    _pair(b, b.node("Identity", [first]), out="y")
    b.output("y", [1, 8])
    assert run_one_pass(b.model(), "strip-quantisation").operators.count("Clip") == 1


@pytest.mark.parametrize(("high", "clips"), [(1.0, 1), (0.923, 1), (0.91, 2)])
def test_a_range_that_nothing_leaves_by_half_a_step_is_no_clip(high: float, clips: int) -> None:
    """A gate that ends at 127 * STEP / 6 + 0.5, which is 0.9233, quantised to 0..high."""
    b = GraphBuilder(13)
    gate = b.node("HardSigmoid", [_pair(b, b.input("x", [1, 64]))], alpha=1 / 6)
    numbers = _numbers(b, high / 255, kind=np.uint8)
    b.node("DequantizeLinear", [b.node("QuantizeLinear", [gate, *numbers]), *numbers], "y")
    b.output("y", [1, 64])
    run = run_one_pass(b.model(), "strip-quantisation", samples=_samples(1, 64))
    assert run.operators.count("Clip") == clips
    assert run.comparisons[0].max_abs <= STEP / 2 / 6 + high / 255 / 2 + 1e-6


def _with_weights(axis: int) -> onnx.ModelProto:
    b = GraphBuilder(13)
    shape = (6, 8) if axis == 0 else (8, 6)
    whole = b.constant(b.rng.integers(-127, 128, shape).astype(np.int8))
    scales, zeros = b.rng.uniform(0.01, 0.03, 6).astype(np.float32), np.zeros(6, np.int8)
    w = b.node("DequantizeLinear", [whole, b.constant(scales), b.constant(zeros)], axis=axis)
    b.node("Gemm", [_pair(b, b.input("x", [1, 8])), w], "y", transB=int(axis == 0))
    b.output("y", [1, 6])
    return b.model()


@pytest.mark.parametrize("axis", [0, 1])
def test_weights_with_a_scale_per_channel_are_exact(axis: int) -> None:
    run = run_one_pass(_with_weights(axis), "strip-quantisation",
                       samples=[{"x": np.arange(-4, 4, dtype=np.float32)[None] * STEP}])  # fmt: skip
    assert run.operators == ["Clip", "Gemm"]
    assert run.max_rel < 1e-5


def test_float_weights_with_a_pair_keep_their_rounding() -> None:
    b = GraphBuilder(13)
    w = _pair(b, b.weight(6, 8))
    b.node("Gemm", [b.input("x", [1, 8]), w], "y", transB=1)
    b.output("y", [1, 6])
    run = run_one_pass(b.model(), "strip-quantisation")
    assert run.operators == ["Gemm"]
    assert run.max_rel < 1e-5


def test_a_table_of_whole_numbers_behind_gather() -> None:
    b = GraphBuilder(13)
    table = b.constant(b.rng.integers(-127, 128, (20, 8)).astype(np.int8))
    numbers = _numbers(b, zero=3)
    for name in ("y", "z"):
        rows = b.node("Gather", [table, b.input(f"ids_{name}", [1, 4], TensorProto.INT64)])
        b.node("DequantizeLinear", [rows, *numbers], name)
        b.output(name, [1, 4, 8])
    run = run_one_pass(b.model(), "strip-quantisation")
    assert run.operators == ["Gather", "Gather"]
    assert run.max_rel < 1e-6


def test_an_input_of_whole_numbers() -> None:
    b = GraphBuilder(13)
    b.node("DequantizeLinear", [b.input("x", [1, 8], TensorProto.UINT8), *_numbers(b, zero=7, kind=np.uint8)], "y")
    b.output("y", [1, 8])
    run = run_one_pass(b.model(), "strip-quantisation")
    assert run.operators == ["Cast", "Sub", "Mul"]
    assert run.max_rel < 1e-6


def test_two_scales_are_left_alone_and_refused_with_the_remedy() -> None:
    b = GraphBuilder(13)
    t = b.node("QuantizeLinear", [b.input("x", [1, 8]), *_numbers(b)])
    b.node("DequantizeLinear", [t, *_numbers(b, 2 * STEP)], "y")
    b.output("y", [1, 8])
    assert "another scale" in run_one_pass(b.model(), "strip-quantisation").result.skipped[0].reason
    with pytest.raises(Refusal) as caught:
        transform(b.model())
    assert caught.value.reason == "OPERATOR_REFUSED"
    assert "float model from before" in caught.value.remedy


def test_an_infinite_scale_is_refused_by_node() -> None:
    b = GraphBuilder(13)
    numbers = _numbers(b, float("inf"))
    t = b.node("QuantizeLinear", [b.input("x", [1, 8]), *numbers])
    b.node("DequantizeLinear", [t, *numbers], "y")
    b.output("y", [1, 8])
    with pytest.raises(Refusal) as caught:
        transform(b.model())
    assert (caught.value.reason, caught.value.metadata["node"]) == ("QUANTISATION_SCALE", "/QuantizeLinear_0")


@pytest.mark.parametrize("kind, largest", [(TensorProto.FLOAT8E4M3FN, 448), (TensorProto.FLOAT8E5M2, 57344)])
def test_float8_is_a_clip_and_its_weights_float(kind: int, largest: float) -> None:
    b = GraphBuilder(19, ir_version=9)
    weight = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
    zero = onnx.helper.make_tensor("zero", kind, [], b"\0", raw=True)
    b.weights.append(zero)
    t = b.input("x", [1, 8])
    for x in (t, b.constant(weight)):
        numbers = [b.constant(np.asarray(2.0**-7, np.float32)), "zero"]
        t = b.node("DequantizeLinear", [b.node("QuantizeLinear", [x, *numbers]), *numbers], f"{x}_real")
    b.node("MatMul", ["x_real", t], "y")
    b.output("y", [1, 4])
    samples = [{"x": np.random.default_rng(i).uniform(-4, 4, (1, 8)).astype(np.float32)} for i in range(4)]
    run = run_one_pass(b.model(), "strip-quantisation", samples=samples)
    assert run.operators == ["Clip", "MatMul"]
    bounds = sorted(float(onnx.numpy_helper.to_array(w)) for w in run.model.graph.initializer if not w.dims)
    assert bounds == [-largest / 128, largest / 128]
    assert run.comparisons[0].cosine > (0.999 if largest == 448 else 0.99)


def test_numbers_that_are_nodes_and_types_that_nothing_infers() -> None:
    b = GraphBuilder(17)  # as the TorchScript exporter writes fake quantisation
    scale, zero = (onnx.numpy_helper.from_array(np.asarray(v)) for v in (np.float32(STEP), np.int8(0)))
    numbers = [b.node("Constant", [], value=value) for value in (scale, zero)]
    t = b.node("QuantizeLinear", [b.node("Mul", [b.input("x", [1, 8]), b.weight(8)]), *numbers])
    b.node("Relu", [b.node("DequantizeLinear", [t, *numbers])], "y")
    b.output("y", [1, 8])
    result = transform(b.model(), samples={"x": np.random.default_rng(0).standard_normal((4, 1, 8)).astype(np.float32)})
    assert not {"QuantizeLinear", "Cast"} & {n.op_type for n in result.model.graph.node}
