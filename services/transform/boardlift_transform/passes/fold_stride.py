"""Fold the stride of a convolution over one signal into its channels.

Before -> After: `Conv(x [N,1,1,W], kernel [1,K], stride [1,S])` -> `Reshape [N,1,W/S,S] -> Transpose -> Reshape
[N,S,1,W/S] -> Conv(kernel [1,K/S], stride 1)`, the weights put in the same order; what is no multiple of S is cut off
or filled with zeros that meet zero weights.
Why: the BPU computes such a layer at stride 1 and throws the rest away. Estimated at O1, 4000 samples, 32 filters:
kernel 80 stride 16, int8 2951 -> 80 us, int16 2953 -> 98 us; kernel 32 stride 8, int8 1192 -> 103 us; stride 4, 1208 ->
163 us. The Reshape is free for one channel only: 16 channels, kernel 8 stride 4, would go from 258 to 2530 us.
Exactness: float rounding (the sum is taken in another order).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes

LEAST_STRIDE = 4


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite unpadded Conv nodes over one channel and one row."""
    return rewrite_nodes(model, PASS.id, {"Conv"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, weight = node.inputs[0], constant_of(input_at(node, 1))
    shape, out = shape_of(x), shape_of(node.outputs[0])
    if x is None or weight is None or shape is None or out is None or len(shape) != 4 or shape[1:3] != (1, 1):
        return None
    filters, _, high, kernel = weight.shape
    stride = (attribute(node, "strides") or [1, 1])[1]
    if high != 1 or stride < LEAST_STRIDE or any(d != 1 for d in attribute(node, "dilations") or []):
        return None
    if any(attribute(node, "pads") or []) or attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
        result.skip(node, "it is padded")
        return None
    taps, windows, base = -(-kernel // stride), out[3], node.name or "Conv"
    rows = windows - 1 + taps
    signal = _of_length(node, editor, x, shape, rows * stride, base)
    folded = editor.reshape(node, signal, [shape[0], 1, rows, stride], hint=f"{base}_rows")
    folded = editor.transpose(node, folded, [0, 1, 3, 2], hint=f"{base}_phases")
    folded = editor.reshape(node, folded, [shape[0], stride, 1, rows], hint=f"{base}_folded")
    filled = np.zeros((filters, taps * stride), np.float32)
    filled[:, :kernel] = weight.reshape(filters, kernel)
    phases = np.ascontiguousarray(filled.reshape(filters, taps, stride).transpose(0, 2, 1)[:, :, None, :])
    inputs = [folded, editor.constant(phases, f"{base}_weight"), *node.inputs[2:]]
    attributes = {"kernel_shape": [1, taps], "strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "group": 1}
    made = editor.node(node, "Conv", inputs, out, attributes, hint=base)
    return made, f"Conv of {stride} channels, kernel {taps}, stride 1"


def _of_length(node: ir.Node, editor: Editor, x: ir.Value, shape: tuple[int, ...], length: int, base: str) -> ir.Value:
    size = [*shape[:3], length]
    if length > shape[3]:
        pads = editor.constant(np.asarray([0] * 7 + [length - shape[3]], np.int64), f"{base}_fill")
        return editor.node(node, "Pad", [x, pads], size, {"mode": "constant"}, hint=f"{base}_filled")
    if length < shape[3]:
        numbers = [editor.constant(np.asarray([v], np.int64), f"{base}_cut") for v in (0, length, 3)]
        return editor.node(node, "Slice", [x, *numbers], size, hint=f"{base}_cut")
    return x


PASS = Pass(
    id="fold-stride",
    summary="Conv with a stride over one signal -> stride as channels",
    exactness=ROUNDING,
    apply=apply,
)
