"""Write reversed slices, reflecting pads and slices after a dilated Conv as Gather with constant indices.

Before -> After: `Slice(step -1)` -> `Gather([n-1, ..., 0])`; `Pad(reflect)` -> one `Gather` per padded axis;
`Conv(dilations > 1) -> Relu -> Slice` -> `... -> Gather`.
Why: the first two run on the CPU, Gather with constant indices on the BPU; on the third the compiler gives up
("passes may have infinite loop"), measured with Conv 7x3 dilation 2. A constant Pad of rank 1 to 3 goes onto four
axes, the only ranks that the runtime takes.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, is_constant, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes

MAX_INDICES = 1 << 16
REACH = 4


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite float Slice and Pad nodes with constant parameters."""
    return rewrite_nodes(model, PASS.id, {"Slice", "Pad"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    shape = shape_of(x)
    if (
        x is None
        or shape is None
        or is_constant(x)
        or any(not is_constant(v) for v in node.inputs[1:] if v is not None)
    ):
        return None
    if node.op_type == "Pad" and len(shape) < 4 and attribute(node, "mode", "constant") == "constant":
        return _wide_pad(node, x, shape, editor)
    indices = _slice_indices(node, shape) if node.op_type == "Slice" else _pad_indices(node, shape)
    if not indices or any(i.size > MAX_INDICES for i in indices.values()):
        return None
    value, size = x, list(shape)
    for axis, taken in indices.items():
        size[axis] = int(taken.size)
        constant = editor.constant(taken.astype(np.int64), f"{node.name}_indices")
        value = editor.node(node, "Gather", [value, constant], list(size), {"axis": axis}, hint=node.name or "Gather")
    return value, f"{len(indices)} x Gather"


def _wide_pad(node: ir.Node, x: ir.Value, shape: tuple[int, ...], editor: Editor) -> tuple[ir.Value, str] | None:
    """Pad of rank 1 to 3 on a 4-D view: the runtime's Pad takes nothing else."""
    amounts, out, rank = constant_of(input_at(node, 1)), shape_of(node.outputs[0]), len(shape)
    if amounts is None or out is None or x.dtype != ir.DataType.FLOAT or amounts.size != 2 * rank:
        return None
    more = 4 - rank
    wide = [*shape[:1], *[1] * more, *shape[1:]]
    begin, end = amounts[:rank].tolist(), amounts[rank:].tolist()
    spread = [part for side in (begin, end) for part in (side[0], *[0] * more, *side[1:])]
    base = node.name or "Pad"
    pads = editor.constant(np.asarray(spread, np.int64), f"{base}_pads")
    lifted = editor.reshape(node, x, wide, hint=f"{base}_in")
    size = [*out[:1], *[1] * more, *out[1:]]
    inputs = [lifted, pads, *node.inputs[2:]]
    made = editor.node(node, "Pad", inputs, size, {"mode": "constant"}, hint=base)
    return editor.reshape(node, made, out, hint=f"{base}_back"), "Pad on four axes"


def _slice_indices(node: ir.Node, shape: tuple[int, ...]) -> dict[int, Array] | None:
    """Indices per axis, None when no step is negative and no dilated Conv is near."""
    parts = [constant_of(input_at(node, i)) for i in range(1, 5)]
    starts, ends, axes, steps = parts
    if starts is None or ends is None:
        return None
    steps = steps if steps is not None else np.ones(starts.size, np.int64)
    if not np.any(steps < 0) and not follows_dilated(node.inputs[0], REACH):
        return None
    where = axes if axes is not None else np.arange(starts.size)
    found = {}
    for start, end, axis, step in zip(starts, ends, where, steps, strict=True):
        place = int(axis) % len(shape)
        stop: int | None = int(end)
        if step < 0 and end < -shape[place]:
            stop = None
        found[place] = np.arange(shape[place])[slice(int(start), stop, int(step))]
    return found


def follows_dilated(value: ir.Value | None, reach: int) -> bool:
    """True when a dilated Conv makes the value, at most `reach` element-wise nodes before."""
    maker = value.producer() if value is not None else None
    if maker is None or reach == 0:
        return False
    if maker.op_type == "Conv":
        return any(d > 1 for d in attribute(maker, "dilations") or [])
    if len(maker.outputs) != 1 or shape_of(maker.outputs[0]) != shape_of(maker.inputs[0]):
        return False
    return any(follows_dilated(v, reach - 1) for v in maker.inputs if not is_constant(v))


def _pad_indices(node: ir.Node, shape: tuple[int, ...]) -> dict[int, Array] | None:
    """Indices per padded axis, None for other modes and for negative amounts."""
    amounts = constant_of(input_at(node, 1))
    if attribute(node, "mode", "constant") != "reflect" or amounts is None or np.any(amounts < 0):
        return None
    rank = len(shape)
    pairs = [(int(amounts[a]), int(amounts[a + rank])) for a in range(rank)]
    return {a: np.pad(np.arange(shape[a]), pair, mode="reflect") for a, pair in enumerate(pairs) if any(pair)}


PASS = Pass(id="replace-moves", summary="reversed Slice and reflecting Pad -> Gather", exactness=BIT_EXACT, apply=apply)
