"""Lay the rows of a Softmax out as channels: its scores are many rows under few heads.

Before -> After: `Softmax [N,H,T,L], axis 3` -> `Reshape [N,T,H,L] -> Softmax, axis 3 -> Reshape [N,H,T,L]`, where there
are at least twice as many rows as heads. Every row keeps its entries and its place; only the axes' names change.
Why: what the BPU does entry by entry it does with channels innermost, padded to 8 or more, so scores of 3 heads are
stored and moved several times. Attention of 197 tokens, 3 heads of 64, O1, estimated: int16 3243 -> 794 us, int8 with
the Softmax in int16 2976 -> 513 us; 64 tokens, 4 heads of 32: 220 -> 176 and 159 -> 112 us. Of the possible numbers of
channels 32 to 128 served 64 tokens equally (176 to 178 us), fewer and all rows as channels were slower (182 to 191 us).
Not planned for int8: there the Softmax is on the CPU and costs the same in both forms; asked onto the BPU in int8 it
loses (64 tokens: 106 -> 138 us). The limit of 2 rows per head lies between two measured models: 24 rows under 16 heads
lose (291 -> 301 us in int16), 16 rows under 6 heads gain little (137 -> 136 us).
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every 4-D Softmax over the last axis that has twice as many rows as channels, or more."""
    return rewrite_nodes(model, PASS.id, {"Softmax"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    shape = shape_of(x)
    if x is None or shape is None or len(shape) != 4 or int(attribute(node, "axis", 1)) % 4 != 3:
        return None
    batch, heads, rows, entries = shape
    if rows < 2 * heads:
        result.skip(node, f"{rows} rows under {heads} heads: padding costs less than what is moved")
        return None
    base = node.name or "Softmax"
    wide = [batch, rows, heads, entries]
    turned = editor.reshape(node, x, wide, hint=f"{base}_rows")
    made = editor.node(node, "Softmax", [turned], wide, {"axis": 3}, hint=base)
    return editor.reshape(node, made, shape, hint=f"{base}_heads"), f"Softmax with {rows} rows as channels, not {heads}"


PASS = Pass(
    id="rows-to-channels",
    summary="Softmax of many rows under few heads -> the rows as channels, between two Reshapes",
    exactness=BIT_EXACT,
    apply=apply,
)
