"""Write a Pad by less than nothing as a Slice, and a Pad of what is left.

Before -> After: `Pad(begin -1, end 2)` -> `Slice(1:) -> Pad(begin 0, end 2)`.
Why: the tool builds it, and its runtime dies on the quantised model (signal 11) where it should run; torch writes such
pads for crops (`F.pad(x, (-1, -1))`).
Exactness: bit-exact. With the modes reflect and edge only where nothing is padded: what is reflected at a cropped side
is not settled between runtimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, is_constant, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite Pad nodes of constant amounts of which one is below zero."""
    return rewrite_nodes(model, PASS.id, {"Pad"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, amounts = node.inputs[0], constant_of(input_at(node, 1))
    shape, out = shape_of(x), shape_of(node.outputs[0])
    if x is None or shape is None or out is None or amounts is None or is_constant(x) or not np.any(amounts < 0):
        return None
    rank = len(shape)
    more = np.maximum(amounts, 0)
    if attribute(node, "mode", "constant") != "constant" and more.any():
        result.skip(node, "it crops and reflects at once")
        return None
    starts = np.maximum(-amounts[:rank], 0)
    ends = np.asarray(shape) - np.maximum(-amounts[rank:], 0)
    if np.any(ends <= starts):
        result.skip(node, "it crops everything away")
        return None
    axes = [a for a in range(rank) if starts[a] > 0 or ends[a] < shape[a]]
    base = node.name or "Pad"
    bounds = [
        editor.constant(np.asarray([values[a] for a in axes], np.int64), f"{base}_{kind}")
        for kind, values in (("starts", starts), ("ends", ends), ("axes", range(rank)))
    ]
    size = [int(e - s) for s, e in zip(starts, ends, strict=True)]
    made = editor.node(node, "Slice", [x, *bounds], size, hint=f"{base}_crop")
    if not more.any():
        return made, "Slice"
    pads = editor.constant(more.astype(np.int64), f"{base}_pads")
    inputs = [made, pads, *node.inputs[2:]]
    made = editor.node(node, "Pad", inputs, out, {"mode": "constant"}, hint=base)
    return made, "Slice, then Pad"


PASS = Pass(id="crop-pad", summary="Pad by less than nothing -> Slice, Pad", exactness=BIT_EXACT, apply=apply)
