import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass

CONTRIB = "com.microsoft"
PASS = "strip-dynamic-quantisation"
NEAR = 0.03
"""Of the output's range: inputs keep 255 steps each."""


def _run(b: GraphBuilder) -> PassRun:
    b.domains = (CONTRIB,)
    return run_one_pass(b.model(), PASS)


def _product(b: GraphBuilder, conv: bool, channels: int) -> None:
    """What quantize_dynamic writes for a MatMul or a Conv."""
    x = b.input("x", [1, 3, 8, 8] if conv else [1, 8])
    q = b.node("DynamicQuantizeLinear", [x], "q", outputs=3)
    whole = b.constant(b.rng.integers(0, 255, (4, 3, 3, 3) if conv else (8, 4)).astype(np.uint8))
    zero = b.constant(np.full(channels, 120, np.uint8) if channels > 1 else np.asarray(120, np.uint8))
    t = b.node("ConvInteger" if conv else "MatMulInteger", [q, whole, "q_2", zero])
    step = b.rng.uniform(0.005, 0.01, channels).astype(np.float32)
    scales = b.node("Mul", ["q_1", b.constant(step if channels > 1 else step.reshape(()))])
    b.node("Mul", [b.node("Cast", [t], to=1), scales], "y")
    b.output("y", [1, 4, 6, 6] if conv else [1, 4])


@pytest.mark.parametrize(("conv", "channels"), [(False, 1), (False, 4), (True, 1)])
def test_the_float_product_is_left(conv: bool, channels: int) -> None:
    b = GraphBuilder(13)
    _product(b, conv, channels)
    run = _run(b)
    assert run.operators == ["Conv" if conv else "MatMul"]
    assert 0 < run.max_rel < NEAR


def test_whole_numbers_that_are_read_elsewhere_are_left_alone() -> None:
    b = GraphBuilder(13)
    _product(b, conv=False, channels=1)
    b.output("t1", [1, 4], 6)
    assert "read elsewhere" in _run(b).result.skipped[0].reason


def test_the_runtime_s_fused_product() -> None:
    b = GraphBuilder(13)
    whole = b.constant(
        b.rng.integers(-60, 61, (8, 4)).astype(np.int8)
    )  # 7 bits: processors without VNNI saturate beyond
    step, zero = b.constant(np.asarray(0.01, np.float32)), b.constant(np.asarray(2, np.int8))
    b.node("DynamicQuantizeMatMul", [b.input("x", [1, 8]), whole, step, zero, b.weight(4)], "y", domain=CONTRIB)
    b.output("y", [1, 4])
    run = _run(b)
    assert run.operators == ["MatMul", "Add"]
    assert run.max_rel < NEAR


def test_the_runtime_s_lstm() -> None:
    b = GraphBuilder(13)
    weights = [b.constant(b.rng.integers(-60, 61, (1, n, 24)).astype(np.int8)) for n in (5, 6)]
    numbers = [b.constant(np.asarray([0.004], np.float32)), b.constant(np.asarray([1], np.int8))] * 2
    inputs = [b.input("x", [4, 1, 5]), *weights, b.weight(1, 48), "", "", "", "", *numbers]
    b.node("DynamicQuantizeLSTM", inputs, "y", domain=CONTRIB, hidden_size=6)
    b.output("y", [4, 1, 1, 6])
    run = _run(b)
    assert run.operators == ["LSTM"]
    assert run.max_rel < NEAR
