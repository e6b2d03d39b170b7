from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.edit_graph import Array
from boardlift_transform.equivalence import Session
from boardlift_transform.value_range import DEPTH, UNKNOWN, Range, range_of

LOW, HIGH = -1.3, 0.9


def _builder(opset: int = 17) -> tuple[GraphBuilder, str]:
    """x [1,4,6,6], clipped to LOW..HIGH."""
    b = GraphBuilder(opset)
    bounds = [b.constant(np.asarray(v, np.float32)) for v in (LOW, HIGH)]
    return b, b.node("Clip", [b.input("x", [1, 4, 6, 6]), *bounds])


def _answer(b: GraphBuilder, value: str) -> tuple[Range, Array]:
    """What is said of a value, and what it was on random inputs."""
    b.node("Identity", [value], "y")
    b.output("y", None)
    model = b.model()
    names = {v.name: v for v in ir.from_proto(model).graph.outputs}
    session = Session(model.SerializeToString())
    rng = np.random.default_rng(0)
    feeds = [rng.uniform(-3, 3, (1, 4, 6, 6)).astype(np.float32) for _ in range(20)]
    return range_of(names["y"]), np.concatenate([session.run({"x": f})["y"].reshape(-1) for f in feeds])


SINGLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Relu", {}),
    ("Sigmoid", {}),
    ("Tanh", {}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("HardSwish", {}),
    ("Softmax", {"axis": 1}),
    ("MaxPool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
    ("AveragePool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("GlobalAveragePool", {}),
    ("ReduceMax", {"axes": [2, 3]}),
    ("Transpose", {"perm": [0, 2, 3, 1]}),
)


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.5])
@pytest.mark.parametrize(("operator", "attributes"), SINGLE, ids=[s[0] for s in SINGLE])
def test_no_element_lies_outside(operator: str, attributes: dict[str, Any], shift: float) -> None:
    b, x = _builder()
    t = b.node("Add", [x, b.constant(np.asarray(shift, np.float32))])
    (low, high), seen = _answer(b, b.node(operator, [t], **attributes))
    assert np.isfinite([low, high]).all()
    assert low - 1e-6 <= seen.min() and seen.max() <= high + 1e-6


@pytest.mark.parametrize("operator", ["Add", "Mul", "Concat"])
def test_two_inputs(operator: str) -> None:
    b, x = _builder()
    more: dict[str, Any] = {"axis": 1} if operator == "Concat" else {}
    (low, high), seen = _answer(b, b.node(operator, [x, b.node("Sigmoid", [b.node("Relu", [x])])], **more))
    assert np.isfinite([low, high]).all()
    assert low - 1e-6 <= seen.min() and seen.max() <= high + 1e-6


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("gate", ["Sigmoid", "HardSigmoid"])
def test_a_value_times_its_own_gate_is_bounded_closely(gate: str, order: int) -> None:
    b, x = _builder()
    (low, high), seen = _answer(b, b.node("Mul", [x, b.node(gate, [x])][::order]))
    assert low - 1e-6 <= seen.min() <= low + 0.01
    assert high - 0.01 <= seen.max() <= high + 1e-6


def test_what_nobody_bounds_is_unknown() -> None:
    for operator, inputs in (("Conv", ["w"]), ("Exp", []), ("Resize", ["", "s"])):
        b, x = _builder()
        known = {"w": b.weight(2, 4, 1, 1), "s": b.constant(np.asarray([1, 1, 2, 2], np.float32)), "": ""}
        assert _answer(b, b.node(operator, [x, *(known[i] for i in inputs)]))[0] == UNKNOWN
    b = GraphBuilder(17)
    assert (
        _answer(b, b.node("Add", [b.input("x", [1, 4, 6, 6]), b.constant(np.asarray([np.nan], np.float32))]))[0]
        == UNKNOWN
    )
    b = GraphBuilder(17)
    assert _answer(b, b.node("Relu", [b.input("x", [1, 4, 6, 6])]))[0] == (0.0, np.inf)


def test_values_read_twice_cost_no_more() -> None:
    b, t = _builder()
    for _ in range(DEPTH - 3):  # two ways each: 2^21 without a memory
        t = b.node("Add", [t, t])
    low, high = _answer(b, t)[0]
    assert (low, high) == pytest.approx((LOW * 2 ** (DEPTH - 3), HIGH * 2 ** (DEPTH - 3)))
    b, t = _builder()
    for _ in range(DEPTH + 1):
        t = b.node("Relu", [t])
    assert _answer(b, t)[0] == (0.0, np.inf)
