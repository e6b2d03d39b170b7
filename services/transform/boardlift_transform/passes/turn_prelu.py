"""Write a PRelu whose slopes do not lie along the channels in a form that the tool takes.

Before -> After: slopes along H or W -> `Transpose`, PRelu with slopes `[C, 1, 1]`, `Transpose`; along several axes, or
on a tensor that is not 4-D -> `Relu(x) - slope * Relu(-x)`.
Why: the tool refuses such slopes ("cannot reshape array of size 24 into shape (1,1,1,1)"); tokens have them on the last
axis. Slopes of one element and of the channels stay.
Exactness: bit-exact (one of the two terms is zero).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, constant_of, input_at, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite PRelu nodes with constant slopes."""
    return rewrite_nodes(model, PASS.id, {"PRelu"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, slope = node.inputs[0], constant_of(input_at(node, 1))
    shape = shape_of(x)
    if x is None or slope is None or shape is None or slope.size == 1 or slope.ndim > len(shape):
        return None
    aligned = slope.reshape([1] * (len(shape) - slope.ndim) + list(slope.shape))
    axes = [axis for axis in range(len(shape)) if aligned.shape[axis] != 1]
    if len(shape) == 4 and axes == [1]:
        return None
    if len(shape) == 4 and axes in ([2], [3]):
        return _turned(node, editor, x, shape, aligned, axes[0])
    return _in_parts(node, editor, x, shape, aligned)


def _turned(
    node: ir.Node, editor: Editor, x: ir.Value, shape: tuple[int, ...], slope: Array, axis: int
) -> tuple[ir.Value, str]:
    base, perm = node.name or "PRelu", [0, 1, 2, 3]
    perm[1], perm[axis] = axis, 1
    slopes = editor.constant(slope.reshape(-1, 1, 1), f"{base}_slope")
    turned = editor.transpose(node, x, perm, hint=f"{base}_in")
    value = editor.node(node, "PRelu", [turned, slopes], [shape[p] for p in perm], hint=base)
    return editor.transpose(node, value, perm, hint=f"{base}_back"), f"axis {axis} as channels"


def _in_parts(node: ir.Node, editor: Editor, x: ir.Value, shape: tuple[int, ...], slope: Array) -> tuple[ir.Value, str]:
    base = node.name or "PRelu"
    minus = editor.constant(np.asarray(-1, slope.dtype), f"{base}_minus")
    slopes = editor.constant(np.negative(slope), f"{base}_slope")
    above = editor.node(node, "Relu", [x], shape, hint=f"{base}_above")
    below = editor.node(node, "Mul", [x, minus], shape, hint=f"{base}_negated")
    below = editor.node(node, "Relu", [below], shape, hint=f"{base}_below")
    below = editor.node(node, "Mul", [below, slopes], shape, hint=f"{base}_scaled")
    return editor.node(node, "Add", [above, below], shape, hint=base), "Relu(x) - slope * Relu(-x)"


PASS = Pass(
    id="turn-prelu",
    summary="PRelu with slopes off the channels -> Transposes around it, or two Relu",
    exactness=BIT_EXACT,
    apply=apply,
)
