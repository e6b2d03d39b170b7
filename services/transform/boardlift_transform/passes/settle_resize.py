"""Write the Resize forms that the tool gets wrong with operators that it gets right.

Before -> After: nearest, by 2, 4, 8, that repeats its rows shifted (half_pixel and floor) -> the plain form, shifted by
Slice and Concat; nearest of another pattern -> two MatMul of zeros and ones; linear down by a whole factor -> Slice, or
Slice and AveragePool of 2; linear whose scale is not the ratio of the sizes -> two MatMul of its weights.
Why: on the BPU nearest takes row i // scale whatever the attributes say, and linear takes the ratio of the sizes for
the scale, which differ where the size is odd. Both as integers only: the tool's own cosine does not show it. Signal
to noise, Conv, Resize, Conv in int8, simulated: half_pixel with floor by 2 -1.2 -> 37.5 dB, asymmetric with ceil by 4
-2.7 -> 36.7 dB; linear by 0.5 of 7x9 0.2 -> 35.4 dB. Linear down by 2 of an even size gives its input the smaller
threshold of its output: 19.2 -> 35.1 dB.
Exactness: float rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes
from boardlift_transform.resize_places import even_steps, linear_weights, nearest_rows, places, shift_of

REPEATED = frozenset({1, 2, 4, 8})
"""Scales of nearest on the BPU; any other runs on the CPU, which reads the attributes."""
EXACT = 1e-3
"""Elements by which a size may be off the scale: a third is not exact in float32."""


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 4-D Resize nodes over H and W."""
    return rewrite_nodes(model, PASS.id, {"Resize"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    before, after = shape_of(x), shape_of(node.outputs[0])
    if x is None or before is None or after is None or len(before) != 4 or before[:2] != after[:2]:
        return None
    scales, sizes = constant_of(input_at(node, 2)), constant_of(input_at(node, 3))
    given = scales is not None and scales.size == 4
    if x.dtype != ir.DataType.FLOAT or (not given and (sizes is None or sizes.size != 4)):
        return None
    ratio = [float(scales[i]) if given and scales is not None else after[i] / before[i] for i in (2, 3)]
    at = [
        places(attribute(node, "coordinate_transformation_mode", "half_pixel"), before[i], after[i], r)
        for i, r in zip((2, 3), ratio, strict=True)
    ]
    found = [place for place in at if place is not None]
    mode = attribute(node, "mode", "nearest")
    if len(found) < len(at) or mode not in ("nearest", "linear"):
        return None
    if mode == "nearest":
        return _nearest(node, editor, found, before, after)
    exact = all(abs(after[i] - before[i] * r) < EXACT for i, r in zip((2, 3), ratio, strict=True))
    return _linear(node, editor, found, before, after, exact)


def _nearest(
    node: ir.Node, editor: Editor, at: list[Array], before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[ir.Value, str] | None:
    scales = [after[i] // before[i] for i in (2, 3)]
    whole = all(after[i] == before[i] * s for i, s in zip((2, 3), scales, strict=True))
    if not whole or not set(scales) <= REPEATED:
        return None
    rounding = attribute(node, "nearest_mode", "round_prefer_floor")
    rows = [nearest_rows(rounding, p, before[i]) for p, i in zip(at, (2, 3), strict=True)]
    plain = [np.arange(after[i]) // s for i, s in zip((2, 3), scales, strict=True)]
    if all(np.array_equal(r, p) for r, p in zip(rows, plain, strict=True)):
        return None
    shifts = [shift_of(r, s, before[i]) for r, s, i in zip(rows, scales, (2, 3), strict=True)]
    if shifts[0] is None or shifts[1] is None:
        return _multiply(node, editor, [np.eye(before[i])[r] for r, i in zip(rows, (2, 3), strict=True)], before)
    base = node.name or "Resize"
    options = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    factors = editor.constant(np.asarray([1, 1, *scales], np.float32), f"{base}_scales")
    roi = editor.constant(np.zeros(0, np.float32), f"{base}_roi")
    value = editor.node(node, "Resize", [node.inputs[0], roi, factors], after, options, hint=base)
    for axis, shift in zip((2, 3), shifts, strict=True):
        value = _moved(node, editor, value, axis, int(shift or 0), after)
    return value, "the plain form, shifted"


def _cut(node: ir.Node, editor: Editor, x: ir.Value, axis: int, start: int, count: int, step: int = 1) -> ir.Value:
    shape = list(shape_of(x) or ())
    if (start, count, step) == (0, shape[axis], 1):
        return x
    shape[axis] = count
    bounds = (start, start + (count - 1) * step + 1, axis, step)
    base = node.name or "Resize"
    values = [editor.constant(np.asarray([v], np.int64), f"{base}_cut") for v in bounds]
    return editor.node(node, "Slice", [x, *values], shape, hint=f"{base}_cut")


def _moved(node: ir.Node, editor: Editor, x: ir.Value, axis: int, shift: int, after: Sequence[int]) -> ir.Value:
    if shift == 0:
        return x
    count, far = after[axis], abs(shift)
    kept = _cut(node, editor, x, axis, max(shift, 0), count - far)
    edge = _cut(node, editor, x, axis, 0 if shift < 0 else count - 1, 1)
    parts = [edge] * far + [kept] if shift < 0 else [kept] + [edge] * far
    return editor.node(node, "Concat", parts, after, {"axis": axis}, hint=f"{node.name or 'Resize'}_moved")


def _linear(
    node: ir.Node, editor: Editor, at: list[Array], before: tuple[int, ...], after: tuple[int, ...], exact: bool
) -> tuple[ir.Value, str] | None:
    """Write what steps evenly through its input as cuts and a mean of two, other inexact ones as products."""
    steps = [even_steps(p, before[i]) for p, i in zip(at, (2, 3), strict=True)]
    if exact and all(after[i] >= before[i] for i in (2, 3)):
        return None
    if steps[0] is None or steps[1] is None:
        if exact:
            return None
        return _multiply(node, editor, [linear_weights(p, before[i]) for p, i in zip(at, (2, 3), strict=True)], before)
    value = node.inputs[0]
    kernel, strides = [s[2] for s in steps if s], [s[1] for s in steps if s]
    for axis, found in zip((2, 3), steps, strict=True):
        if found and value is not None:
            start, step, size = found
            count = after[axis]
            whole = kernel == [1, 1]
            length = count if whole else (count - 1) * step + size
            value = _cut(node, editor, value, axis, start, length, step if whole else 1)
    if value is None or kernel == [1, 1]:
        return (value, "every so many rows") if value is not None else None
    options = {"kernel_shape": kernel, "strides": strides, "pads": [0, 0, 0, 0]}
    return editor.node(node, "AveragePool", [value], after, options, hint=node.name or "Resize"), "AveragePool"


def _multiply(node: ir.Node, editor: Editor, weights: list[Array], before: Sequence[int]) -> tuple[ir.Value, str]:
    """Multiply H by the first matrix and W by the second, each ``[output, input]``."""
    base, x = node.name or "Resize", node.inputs[0]
    rows, columns = (w.astype(np.float32) for w in weights)
    middle = [before[0], before[1], len(rows), before[3]]
    value = editor.node(node, "MatMul", [editor.constant(rows, f"{base}_h"), x], middle, hint=f"{base}_h")
    turned = editor.constant(np.ascontiguousarray(columns.T), f"{base}_w")
    return editor.node(node, "MatMul", [value, turned], [*middle[:3], len(columns)], hint=base), "two MatMul"


PASS = Pass(
    id="settle-resize",
    summary="nearest shifted, linear down or of odd sizes -> Slice, Concat, AveragePool, MatMul",
    exactness=ROUNDING,
    apply=apply,
)
