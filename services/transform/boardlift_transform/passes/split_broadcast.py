"""Write Expand and Tile over two axes in forms that stay on the BPU.

Before -> After: `Expand(x, [1,C,H,W])` over two axes -> `Add(x, zeros [1,1,H,W])`; `Tile` over two axes -> two Tiles.
Why: over one axis both run on the BPU, over two at once on the CPU.
Exactness: bit-exact (adding 0 turns -0 into 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, constant_of, input_at, is_constant, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes

MAX_ZEROS = 1 << 20


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite float Expand and Tile nodes with static shapes."""
    return rewrite_nodes(model, PASS.id, {"Expand", "Tile"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    before, after = shape_of(x), shape_of(out)
    if x is None or before is None or after is None or x.dtype != ir.DataType.FLOAT or is_constant(x):
        return None
    if node.op_type == "Tile":
        return _tiles(node, editor)
    aligned = [1] * (len(after) - len(before)) + list(before)
    axes = [i for i, (a, b) in enumerate(zip(aligned, after, strict=True)) if a != b]
    if len(axes) < 2:
        return None
    zeros_shape = [after[i] if i in axes else 1 for i in range(len(after))]
    if int(np.prod(zeros_shape, dtype=np.int64)) > MAX_ZEROS:
        result.skip(node, f"zeros of shape {zeros_shape} would be too large")
        return None
    zeros = editor.constant(np.zeros(zeros_shape, np.float32), f"{node.name}_zeros")
    return editor.node(node, "Add", [x, zeros], after, hint=node.name or "Expand"), f"Add(zeros {zeros_shape})"


def _tiles(node: ir.Node, editor: Editor) -> tuple[ir.Value, str] | None:
    repeats = constant_of(input_at(node, 1))
    value = node.inputs[0]
    if repeats is None or value is None:
        return None
    axes = [int(a) for a in np.flatnonzero(repeats != 1)]
    if len(axes) < 2:
        return None
    shape = list(shape_of(value) or ())
    for axis in axes:
        shape[axis] *= int(repeats[axis])
        one = np.ones(len(shape), np.int64)
        one[axis] = repeats[axis]
        amount = editor.constant(one, f"{node.name}_repeats")
        value = editor.node(node, "Tile", [value, amount], list(shape), hint=node.name or "Tile")
    return value, f"{len(axes)} Tiles"


PASS = Pass(
    id="split-broadcast",
    summary="Expand and Tile over two axes -> Add(zeros), two Tiles",
    exactness=BIT_EXACT,
    apply=apply,
)
