"""Normalisation of a map over groups of channels, written in operators that keep the map's layout.

A group's mean is taken per channel first (ReduceMean over all but batch and channels) and then averaged by a Conv of
kernel 1 whose weights are one over the channels of a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, shape_of

_DENSE = 256
"""Up to so many channels one Conv averages and spreads; beyond, two of fewer weights: to the groups and back."""


def is_mean(node: ir.Node) -> bool:
    """Whether a node is the mean over the last axis of `[N,G,M]`, which stays."""
    kept = int(attribute(node, "keepdims", 1)) == 1
    return node.op_type == "ReduceMean" and kept and list(attribute(node, "axes") or ()) in ([2], [-1])


class NormWriter:
    """Writes a normalisation of a map of shape ``full`` before ``end``."""

    def __init__(self, editor: Editor, end: ir.Node, full: tuple[int, ...], groups: int) -> None:
        self._editor, self._end, self._full, self._groups = editor, end, full, groups
        self._ones = [1] * (len(full) - 2)

    def move(self, node: ir.Node, moved: Mapping[ir.Value | None, ir.Value]) -> ir.Value:
        """Write a node of a region again, on the ungrouped operands."""
        base = node.name or node.op_type
        if node.op_type == "InstanceNormalization":
            return self.normalise(moved[node.inputs[0]], node)
        if is_mean(node):
            return self._mean(moved[node.inputs[0]], base)
        operands = [moved[v] if v in moved else self._constant(constant_of(v), base) for v in node.inputs]
        return self._operate(node.op_type, operands, base)

    def normalise(self, x: ir.Value, node: ir.Node) -> ir.Value:
        """InstanceNormalization by its definition; deviations are squared after the mean is off, so nothing cancels."""
        base = node.name or node.op_type
        away = self._operate("Sub", [x, self._mean(x, base)], base)
        variance = self._mean(self._operate("Mul", [away, away], base), base)
        floor = self._constant(np.float32(attribute(node, "epsilon", 1e-5)), base)
        spread = self._operate("Sqrt", [self._operate("Add", [variance, floor], base)], base)
        out = self._operate("Div", [away, spread], base)
        for operator, value, neutral in (("Mul", node.inputs[1], 1), ("Add", node.inputs[2], 0)):
            array = constant_of(value)
            if np.any(array != neutral):
                out = self._operate(operator, [out, self._constant(array, base)], base)
        return out

    def _mean(self, x: ir.Value, base: str) -> ir.Value:
        """A group's mean at each of its channels: mean per channel, averaged by a Conv of kernel 1."""
        axes, size = [2 + k for k in range(len(self._ones))], self._full[1] // self._groups
        small = [*self._full[:2], *self._ones]
        value = self._editor.node(self._end, "ReduceMean", [x], small, {"axes": axes, "keepdims": 1}, hint=base)
        spread = np.repeat(np.eye(self._groups, dtype=np.float32), size, 0)
        weights = [spread @ spread.T / size] if self._full[1] <= _DENSE else [spread.T / size, spread]
        for weight in weights if size > 1 else ():
            kernel = self._editor.constant(weight.reshape(*weight.shape, *self._ones), f"{base}_average")
            small[1] = len(weight)
            attributes = {"kernel_shape": self._ones}
            value = self._editor.node(self._end, "Conv", [value, kernel], small, attributes, hint=f"{base}_groups")
        return value

    def _constant(self, array: Any, base: str) -> ir.Value:
        """One number, or one per group, for each channel of its group."""
        if array.size > 1:
            array = np.repeat(array.reshape(-1), self._full[1] // self._groups).reshape(-1, *self._ones)
        return self._editor.constant(array.reshape(array.shape if array.size > 1 else ()), f"{base}_value")

    def _operate(self, operator: str, operands: list[ir.Value], base: str) -> ir.Value:
        large = any(shape_of(v) == self._full for v in operands)
        shape = self._full if large else [*self._full[:2], *self._ones]
        return self._editor.node(self._end, operator, operands, shape, hint=f"{base}_{operator.lower()}")
