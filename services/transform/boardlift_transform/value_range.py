"""Between which numbers a value lies, by interval arithmetic over the nodes that make it.

Bounds hold in real arithmetic; what float rounding adds is for the caller to allow. A product of a value with a rising
function of itself (HardSwish, SiLU) is taken in pieces, since the two are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, attribute, input_at
from boardlift_transform.quantised_values import read_constant

Range = tuple[float, float]
"""Lowest and highest; infinite where nothing is known."""
UNKNOWN: Range = (-np.inf, np.inf)
DEPTH = 24
"""Nodes that are looked back at most."""
PIECES = 512
SELECTS = frozenset(
    "Reshape Transpose Flatten Squeeze Unsqueeze Slice Gather MaxPool Split Expand Tile Identity DepthToSpace"
    " SpaceToDepth Dropout GlobalAveragePool GlobalMaxPool ReduceMean ReduceMax ReduceMin".split()
)
"""Every element is one of the first input's, or a mean of some."""
_RISING: dict[str, Callable[[ir.Node, Array], Array]] = {
    "Relu": lambda node, x: np.maximum(x, 0.0),
    "Sigmoid": lambda node, x: 0.5 + 0.5 * np.tanh(0.5 * x),
    "Tanh": lambda node, x: np.tanh(x),
    "HardSigmoid": lambda node, x: np.clip(
        float(attribute(node, "alpha", 0.2)) * x + float(attribute(node, "beta", 0.5)), 0.0, 1.0
    ),
}


def range_of(value: ir.Value | None) -> Range:
    """Bounds of all elements of a float value, whatever is fed."""
    return _Walk().of(value)


class _Walk:
    """One question; values that many nodes read are worked out once."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Range] = {}
        self._depth = 0

    def of(self, value: ir.Value | None) -> Range:
        """Bounds of a value; unknown ones where it lies too far back."""
        if value is None or self._depth >= DEPTH:
            return UNKNOWN
        if value not in self._known:
            self._depth += 1
            self._known[value] = self._find(value)
            self._depth -= 1
        return self._known[value]

    def _find(self, value: ir.Value) -> Range:
        constant = read_constant(value)
        if constant is not None:
            return _of_constant(constant)
        node = value.producer()
        if node is None or node.domain not in ("", "ai.onnx"):
            return UNKNOWN
        if node.op_type in SELECTS:
            return self.of(node.inputs[0])
        if _is_rising(node):
            return _rise(node, self.of(node.inputs[0]))
        rule = _RULES.get(node.op_type)
        return UNKNOWN if rule is None else rule(node, self)


def _of_constant(array: Array) -> Range:
    if array.dtype.kind not in "fiu" or not array.size or np.isnan(array).any():
        return UNKNOWN
    return float(array.min()), float(array.max())


def _is_rising(node: ir.Node) -> bool:
    return node.op_type in _RISING and float(attribute(node, "alpha", 1.0)) > 0


def _rise(node: ir.Node, x: Range) -> Range:
    low, high = _RISING[node.op_type](node, np.asarray(x, np.float64))
    return float(low), float(high)


def _clip(node: ir.Node, walk: _Walk) -> Range:
    ends = []
    for index, name, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        given: Any = input_at(node, index)
        given = attribute(node, name, default) if given is None else read_constant(given)
        if given is None or np.isnan(given).any():
            return UNKNOWN
        ends.append(float(np.asarray(given).reshape(-1)[0]))
    low, high = walk.of(node.inputs[0])
    return min(max(low, ends[0]), ends[1]), min(max(high, ends[0]), ends[1])


def _softmax(node: ir.Node, walk: _Walk) -> Range:
    return 0.0, 1.0


def _average_pool(node: ir.Node, walk: _Walk) -> Range:
    low, high = walk.of(node.inputs[0])
    padded = attribute(node, "count_include_pad", 0)
    return (min(low, 0.0), max(high, 0.0)) if padded else (low, high)


def _hull(node: ir.Node, walk: _Walk) -> Range:
    ranges = [walk.of(v) for v in node.inputs]
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _add(node: ir.Node, walk: _Walk) -> Range:
    (a, b), (c, d) = (walk.of(v) for v in node.inputs)
    return a + c, b + d


def _mul(node: ir.Node, walk: _Walk) -> Range:
    for x, gate in (node.inputs, node.inputs[::-1]):
        maker = gate.producer() if gate is not None else None
        if maker is not None and maker.domain in ("", "ai.onnx") and _is_rising(maker) and maker.inputs[0] is x:
            return _gated(maker, walk.of(x))
    return _product(*(np.asarray(walk.of(v))[:, None] for v in node.inputs))


def _hard_swish(node: ir.Node, walk: _Walk) -> Range:
    gate = ir.Node("", "HardSigmoid", [None], [ir.AttrFloat32("alpha", 1 / 6), ir.AttrFloat32("beta", 0.5)])
    return _gated(gate, walk.of(node.inputs[0]))


def _gated(gate: ir.Node, x: Range) -> Range:
    """Bounds of x * gate(x), piece by piece."""
    if not np.all(np.isfinite(x)):
        return UNKNOWN
    ends = np.linspace(*x, PIECES + 1)
    pieces = np.stack([ends[:-1], ends[1:]])
    return _product(pieces, _RISING[gate.op_type](gate, pieces))


def _product(left: Array, right: Array) -> Range:
    """Bounds of products of `[2, pieces]` lowest and highest factors; 0 times infinity is not bounded."""
    if not (np.all(np.isfinite(left)) and np.all(np.isfinite(right))):
        return UNKNOWN
    corners = left[:, None] * right[None]
    return float(corners.min()), float(corners.max())


_RULES: dict[str, Callable[[ir.Node, _Walk], Range]] = {
    "Clip": _clip,
    "Softmax": _softmax,
    "AveragePool": _average_pool,
    "Concat": _hull,
    "Add": _add,
    "Mul": _mul,
    "HardSwish": _hard_swish,
}
