"""Take a joint projection of queries, keys and values apart before its heads are laid out, not after.

Before -> After: `Linear [B,N,3*H*D] -> Reshape [B,N,3,H,D] -> Transpose [3,B,H,N,D] -> Gather, Split or Slice` ->
three `Linear [B,N,H*D]`, each with `Reshape [B,N,H,D]` and `Transpose [B,H,N,D]`. Orders like `[B,N,H,3,D]` and the
Unsqueeze, Transpose, Squeeze of nn.MultiheadAttention are followed as well. Where others read the projection, or it is
no constant Gemm, MatMul or Conv, a part in one piece is cut off by Slice.
Why: with more than four axes the tool stores one channel padded to 128: 2.2 ms for the Reshape and 1.3 ms for the
Transpose per block of a ViT of 65 tokens, 85 % of the whole (O1, int8, estimated).
The scale and shift that a diffusion policy's step and observation give every block, `[B,2*C] -> [B,2,C,1] -> Gather`,
are such parts too: 57 us per block for C = 256, 2.0 ms to 1.55 ms for a network of twelve.
Exactness: float rounding (the kernels may sum in another order).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.axis_factors import MOVES, RANK, Layout, chain_of
from boardlift_transform.cut_projection import cut_projection
from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, remove_unused, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, node_label

TAKES = frozenset(["Gather", "Split", "Slice"])


@dataclass
class Part:
    """One entry of a factor of the joint value, and the moves around the take."""

    joint: ir.Value
    first: ir.Node
    """First move; what replaces the part is inserted before it."""
    end: ir.Value
    """What the moves behind the take lead to."""
    layout: Layout
    """From the cut-off part of the joint value to `end`."""
    axis: int
    """Of the joint value, that is cut."""
    rows: Array
    """Indices on that axis."""


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every part that some joint value is taken apart into."""
    result, editor = PassResult(), Editor(model.graph, PASS.id)
    takes = [n for n in model.graph if n.op_type in TAKES]
    parts = [p for n in takes for o, at in _taken(n) if (p := _part(n, o, at)) is not None]
    ends = {p.end for p in parts}
    for part in parts:
        steps, own = part.layout.steps(), _ends_in(part.joint, ends)
        value = None
        if steps is not None:
            value = cut_projection(part.joint, part.axis, part.rows, part.first, editor, own=own)
        if value is None or steps is None:
            result.skip(part.first, "neither weights to cut nor a part in one piece of at most four axes")
            continue
        hint = part.first.name or part.first.op_type
        editor.replace(part.end, steps.emit(editor, part.first, value, hint))
        result.apply(node_label(part.first), "part of a joint projection", f"{len(part.rows)} channels of its own")
    if result.applied:
        remove_unused(model.graph)
    return result


def _taken(node: ir.Node) -> list[tuple[ir.Value, int]]:
    """Outputs that are one entry of an axis, with its index."""
    shape = shape_of(node.inputs[0])
    if shape is None or node.domain not in ("", "ai.onnx"):
        return []
    if node.op_type == "Split":
        axis = int(attribute(node, "axis", 0)) % len(shape)
        return list(zip(node.outputs, range(shape[axis]), strict=True)) if shape[axis] == len(node.outputs) else []
    at = constant_of(input_at(node, 1))
    if at is None or at.size != 1 or (node.op_type == "Gather" and at.ndim > 0):
        return []
    return [(node.outputs[0], int(at.reshape(-1)[0]))]


def _part(node: ir.Node, out: ir.Value, at: int) -> Part | None:
    """The part behind this take; None where the taken axis is no factor of its own of an axis of the source."""
    source = node.inputs[0]
    joint, chain = chain_of(source) if source is not None else (None, [])
    before, after = shape_of(joint), shape_of(out)
    if joint is None or before is None or after is None or not chain or joint.dtype != ir.DataType.FLOAT:
        return None
    layout = Layout.of(before)
    if not all(layout.follow(move) for move in chain):
        return None
    axis = _axis_of(node, len(layout.value))
    if axis is None or len(layout.value[axis]) != 1:
        return None
    if len(layout.value) <= RANK and axis != 0 and len(before) > 2:  # four axes are dear only for what was a row
        return None
    factor = layout.value[axis][0]
    place = next(i for i, factors in enumerate(layout.source) if factor in factors)
    factors = layout.source[place]
    numbers = np.arange(before[place]).reshape([f.length for f in factors])
    rows = numbers.take(at % factor.length, factors.index(factor)).reshape(-1)
    if len(factors) == 1 or (len(after) == len(layout.value) and after[axis] != 1):
        return None
    factors.remove(factor)
    layout.value[axis : axis + 1] = [[]] if len(after) == len(layout.value) else []
    return Part(joint, chain[0], *_follow(out, layout), place, rows)


def _axis_of(node: ir.Node, rank: int) -> int | None:
    if node.op_type != "Slice":
        return int(attribute(node, "axis", 0)) % rank
    axes, steps = constant_of(input_at(node, 3)), constant_of(input_at(node, 4))
    plain = axes is not None and axes.size == 1 and (steps is None or int(steps.reshape(-1)[0]) == 1)
    return int(axes.reshape(-1)[0]) % rank if axes is not None and plain else None


def _follow(value: ir.Value, layout: Layout) -> tuple[ir.Value, Layout]:
    """Go on over moves as long as one alone reads."""
    readers = [use.node for use in value.uses()]
    while len(readers) == 1 and readers[0].op_type in MOVES and not value.is_graph_output():
        further = layout.copy()
        if not further.follow(readers[0]) or (further.steps() is None and layout.steps() is not None):
            break
        value, layout = readers[0].outputs[0], further
        readers = [use.node for use in value.uses()]
    return value, layout


def _ends_in(value: ir.Value, ends: set[ir.Value]) -> bool:
    """True when all that is made of the value goes into the parts."""
    if value in ends:
        return True
    readers = [use.node for use in value.uses()]
    if not readers or value.is_graph_output() or any(n.op_type not in MOVES | TAKES for n in readers):
        return False
    return all(_ends_in(out, ends) for node in readers for out in node.outputs)


PASS = Pass(
    id="split-joint-heads",
    summary="joint projection, 5-D Reshape and Transpose, Gather/Split/Slice -> a projection and 4-D moves per part",
    exactness=ROUNDING,
    apply=apply,
)
