"""Write pools and depthwise layers with a stride in a form that int16 does not take back to int8.

Before -> After: `GlobalAveragePool(x)`, `ReduceMean(x, axes=[2,3])` -> `ReduceMean(axes=[2])`, `ReduceMean(axes=[3])`;
`GlobalMaxPool(x)` -> `ReduceMax(axes=[2])`, `ReduceMax(axes=[3])`; `AveragePool(k, stride 2)` -> `Conv(x, 1/k^2,
group=C, stride 1)`, `Slice(steps=[2,2])`; a depthwise Conv likewise.
Why: under int16 the tool computes a global pool, and a depthwise layer with a stride, in int8. Two means stay int16
(measured at O2: 56x56x64 148 -> 225 us, where a depthwise Conv of the same size needs 747 us; 7x7x512 510 -> 541 us),
two maxima as well (10x12x8 at O1: 8.4 -> 12.8 us, signal to noise 29.8 -> 35.9 dB; a GlobalMaxPool takes the Conv
behind it along to int8), and so does a depthwise Conv of stride 1 with a Slice behind it (16x16x16: pool k2 s2 15.0 ->
17.3 us, L1 error 0.0048 -> 0.0028; Conv k3 s2 15.0 -> 18.6 us, 0.0127 -> 0.0093). A Conv of one input channel counts
as depthwise (16x17, 8 outputs: 8.6 -> 12.0 us). Planned for int16 only: it buys int8 nothing.
Left as it is in front of a ConvTranspose that shuffle-conv-transpose has left: int8 behind the Slice ends the tool's
compiler ("no valid weight layout", signal 6), a Relu or Resize between does not (measured).
Exactness: float rounding (the sum is taken in another order).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, is_constant, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes

_OPERATORS = ("GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "AveragePool", "Conv")


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite global pools, pools with a stride and depthwise layers with a stride, of 4-D float tensors."""
    return rewrite_nodes(model, PASS.id, _OPERATORS, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    size, made = shape_of(x), shape_of(out)
    if x is None or size is None or made is None or len(size) != 4 or x.dtype != ir.DataType.FLOAT:
        return None
    if node.op_type in ("AveragePool", "Conv"):
        return _strided(node, x, size, made, editor, result)
    if node.op_type == "ReduceMean" and {a % 4 for a in attribute(node, "axes") or range(4)} != {2, 3}:
        return None
    base, kept = node.name or node.op_type, [size[0], size[1], 1, size[3]]
    single = "ReduceMax" if node.op_type == "GlobalMaxPool" else "ReduceMean"
    value = editor.node(node, single, [x], kept, {"axes": [2], "keepdims": 1}, hint=base)
    value = editor.node(node, single, [value], [*size[:2], 1, 1], {"axes": [3], "keepdims": 1}, hint=f"{base}_w")
    if len(made) != 4:
        value = editor.reshape(node, value, made, hint=f"{base}_shape")
    return value, f"{single} over H, then over W"


def _strided(
    node: ir.Node, x: ir.Value, size: tuple[int, ...], made: tuple[int, ...], editor: Editor, result: PassResult
) -> tuple[ir.Value, str] | None:
    strides, pads = list(attribute(node, "strides") or [1, 1]), list(attribute(node, "pads") or [0] * 4)
    pooled = node.op_type == "AveragePool"
    depthwise = int(attribute(node, "group", 1)) == size[1] and is_constant(node.inputs[1]) if not pooled else True
    if strides == [1, 1] or not depthwise or any(d != 1 for d in attribute(node, "dilations") or ()):
        return None
    uneven = pooled and any(pads) and not attribute(node, "count_include_pad", 0)
    if attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "") or uneven:
        result.skip(node, "its padding is not explicit, or is left out of the mean")
        return None
    weight_shape = shape_of(node.inputs[1]) if not pooled else None
    kernel = list(weight_shape[2:]) if weight_shape is not None else list(attribute(node, "kernel_shape"))
    inner = [size[a + 2] + pads[a] + pads[a + 2] - kernel[a] + 1 for a in (0, 1)]
    if [(n - 1) // s + 1 for n, s in zip(inner, strides, strict=True)] != list(made[2:]):
        result.skip(node, "its last window reaches over the border")
        return None
    if any(use.node.op_type == "ConvTranspose" for use in node.outputs[0].uses()):
        result.skip(node, "the tool's compiler dies on its Slice in front of a ConvTranspose, which is int8 anyway")
        return None
    base = node.name or node.op_type
    operands: list[ir.Value | None] = list(node.inputs)
    if pooled:
        weight = np.full((size[1], 1, *kernel), 1.0 / (kernel[0] * kernel[1]), np.float32)
        operands.append(editor.constant(weight, f"{base}_weight"))
    attributes = {"kernel_shape": kernel, "strides": [1, 1], "pads": pads, "dilations": [1, 1], "group": size[1]}
    value = editor.node(node, "Conv", operands, [size[0], made[1], *inner], attributes, hint=base)
    window = {"starts": [0, 0], "ends": inner, "axes": [2, 3], "steps": strides}
    bounds = [editor.constant(np.asarray(v, np.int64), f"{base}_{name}") for name, v in window.items()]
    value = editor.node(node, "Slice", [value, *bounds], made, hint=f"{base}_stride")
    return value, "depthwise Conv of stride 1, Slice"


PASS = Pass(
    id="keep-int16",
    summary="global pools -> mean or maximum per axis, strided pools, depthwise Conv -> stride 1 and Slice: all int16",
    exactness=ROUNDING,
    apply=apply,
)
