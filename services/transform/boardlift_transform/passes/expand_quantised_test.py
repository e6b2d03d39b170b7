import numpy as np
import onnx
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass

CONTRIB = "com.microsoft"


def _three(b: GraphBuilder, name: str, step: float = 0.02, zero: int = 3, shape: tuple[int, ...] = (1, 8)) -> list[str]:
    """An input of whole numbers with scale and zero point."""
    return [b.input(name, shape, TensorProto.UINT8), *_two(b, step, zero)]


def _two(b: GraphBuilder, step: float, zero: int) -> list[str]:
    return [b.constant(np.asarray(step, np.float32)), b.constant(np.asarray(zero, np.uint8))]


def _run(b: GraphBuilder) -> PassRun:
    b.domains = (CONTRIB,)
    return run_one_pass(b.model(), "expand-quantised")


def _conv(b: GraphBuilder) -> str:
    whole = b.constant(b.rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8))
    scales = b.constant(b.rng.uniform(0.002, 0.01, 4).astype(np.float32))
    weight = [whole, scales, b.constant(np.zeros(4, np.int8))]
    bias = b.constant(b.rng.integers(-500, 500, 4).astype(np.int32))
    b.node("QLinearConv", [*_three(b, "x", shape=(1, 3, 8, 8)), *weight, *_two(b, 0.05, 120), bias], "y", pads=[1] * 4)
    b.output("y", [1, 4, 8, 8], TensorProto.UINT8)
    return "Conv"


def _matmul(b: GraphBuilder) -> str:
    weight = [b.constant(b.rng.integers(0, 256, (8, 5)).astype(np.uint8)), *_two(b, 0.01, 128)]
    b.node("QLinearMatMul", [*_three(b, "x"), *weight, *_two(b, 0.05, 100)], "y")
    b.output("y", [1, 5], TensorProto.UINT8)
    return "MatMul"


def _gemm(b: GraphBuilder) -> str:
    weight = [b.constant(b.rng.integers(0, 256, (5, 8)).astype(np.uint8)), *_two(b, 0.01, 128)]
    bias = b.constant(b.rng.integers(-500, 500, 5).astype(np.int32))
    inputs = [*_three(b, "x"), *weight, bias, *_two(b, 0.05, 100)]
    b.node("QGemm", inputs, "y", domain=CONTRIB, transB=1, alpha=1.0)
    b.output("y", [1, 5], TensorProto.UINT8)
    return "Gemm"


@pytest.mark.parametrize("build", [_conv, _matmul, _gemm])
def test_products_are_within_one_step(build) -> None:  # type: ignore[no-untyped-def]
    b = GraphBuilder(13)
    core = build(b)
    run = _run(b)
    assert core in run.operators
    assert run.operators[-1] == "QuantizeLinear"
    assert run.comparisons[0].max_abs <= 1


@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_two_operands(kind: str) -> None:
    b = GraphBuilder(13)
    inputs = [*_three(b, "a"), *_three(b, "c", 0.03, 9), *_two(b, 0.05, 2)]
    b.node(f"QLinear{kind}", inputs, "y", domain=CONTRIB)
    b.output("y", [1, 8], TensorProto.UINT8)
    run = _run(b)
    assert run.operators == ["DequantizeLinear", "DequantizeLinear", kind, "QuantizeLinear"]
    assert run.comparisons[0].max_abs <= 1


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("Sigmoid", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("Softmax", {"axis": 1, "opset": 13}),
        ("AveragePool", {"kernel_shape": [2, 2]}),
        ("GlobalAveragePool", {}),
    ],
)
def test_one_operand(kind: str, attributes: dict[str, object]) -> None:
    b = GraphBuilder(13)
    inputs = [*_three(b, "a", zero=128, shape=(1, 4, 6, 6)), *_two(b, 1 / 256 if kind == "Softmax" else 0.02, 128)]
    b.node(f"QLinear{kind}", inputs, "y", domain=CONTRIB, **attributes)
    b.output("y", dtype=TensorProto.UINT8, shape=_shape(kind))
    run = _run(b)
    assert run.operators == ["DequantizeLinear", kind, "QuantizeLinear"]
    assert run.comparisons[0].max_abs <= 1


def _shape(kind: str) -> list[int]:
    return {"AveragePool": [1, 4, 5, 5], "GlobalAveragePool": [1, 4, 1, 1]}.get(kind, [1, 4, 6, 6])


def test_concat_has_its_result_first() -> None:
    b = GraphBuilder(13)
    inputs = [*_two(b, 0.05, 2), *_three(b, "a"), *_three(b, "c", 0.03, 9)]
    b.node("QLinearConcat", inputs, "y", domain=CONTRIB, axis=1)
    b.output("y", [1, 16], TensorProto.UINT8)
    run = _run(b)
    assert "Concat" in run.operators
    assert run.comparisons[0].max_abs <= 1


def test_channels_last_is_left_alone() -> None:
    b = GraphBuilder(13)
    inputs = [*_three(b, "a", shape=(1, 6, 6, 4)), *_two(b, 0.02, 3)]
    b.node("QLinearGlobalAveragePool", inputs, "y", domain=CONTRIB, channels_last=1)
    b.output("y", [1, 1, 1, 4], TensorProto.UINT8)
    b.domains = (CONTRIB,)
    model: onnx.ModelProto = b.model()
    assert run_one_pass(model, "expand-quantised").result.skipped[0].reason == "channels last"
