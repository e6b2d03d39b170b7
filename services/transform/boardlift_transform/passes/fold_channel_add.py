"""Fold a constant per-channel Add into the bias of the Conv before it; give a Conv behind a constant Add a bias.

Before -> After: `Conv(x, W) -> Add(b)` -> `Conv(x, W, b)`; `Add(b) -> Conv(x, W)` -> `Add(b) -> Conv(x, W, zeros)`.
Why: exporters write linear layers on tokens as MatMul and Add; as Conv with bias it is one row. The tool folds an Add
into the bias of the Conv behind it, and dies (signal 11) when an unpadded Conv has none: LayerNormalization, MatMul.
Exactness: float rounding (the bias is added inside the kernel).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, is_constant, only_use, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every Add of a constant to a Conv, also with a Transpose between them, then what stays before one."""
    result = rewrite_nodes(model, PASS.id, {"Add"}, _fold)
    result.applied += rewrite_nodes(model, PASS.id, {"Conv"}, _give_bias).applied
    return result


def _give_bias(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    weight, source = constant_of(input_at(node, 1)), node.inputs[0].producer() if node.inputs[0] is not None else None
    while source is not None and source.op_type == "Transpose" and source.inputs[0] is not None:
        source = source.inputs[0].producer()
    if weight is None or input_at(node, 2) is not None or source is None or source.op_type != "Add":
        return None
    if not any(is_constant(value) for value in source.inputs):
        return None
    base = node.name or "Conv"
    inputs = [node.inputs[0], node.inputs[1], editor.constant(np.zeros(len(weight), np.float32), f"{base}_bias")]
    attributes = {name: attribute(node, name) for name in node.attributes}
    return editor.node(
        node, "Conv", inputs, shape_of(node.outputs[0]), attributes, hint=base
    ), "Conv with a bias of zeros"


def _fold(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    for x, other in ((node.inputs[0], input_at(node, 1)), (input_at(node, 1), node.inputs[0])):
        added = constant_of(other)
        maker = x.producer() if x is not None else None
        if x is None or added is None or maker is None or only_use(x) is not node:
            continue
        if shape_of(x) != shape_of(node.outputs[0]):
            continue
        transpose = maker if maker.op_type == "Transpose" else None
        if transpose is not None and transpose.inputs[0] is not None:
            inner = transpose.inputs[0]
            maker = inner.producer()
            if maker is None or only_use(inner) is not transpose:
                continue
        if maker is None or maker.op_type != "Conv":
            continue
        return _merged(node, maker, transpose, added, editor)
    return None


def _merged(
    node: ir.Node, maker: ir.Node, transpose: ir.Node | None, added: Any, editor: Editor
) -> tuple[ir.Value, str] | None:
    out = shape_of(maker.outputs[0])
    old = constant_of(input_at(maker, 2))
    if out is None or added.ndim > len(out) or (input_at(maker, 2) is not None and old is None):
        return None
    perm = attribute(transpose, "perm") if transpose is not None else list(range(len(out)))
    channel = perm.index(1)
    aligned = added.reshape([1] * (len(out) - added.ndim) + list(added.shape))
    if any(d != 1 for axis, d in enumerate(aligned.shape) if axis != channel):
        return None
    bias = np.broadcast_to(aligned.reshape(-1), (out[1],)).astype(np.float32)
    if old is not None:
        bias = bias + old
    base = maker.name or "Conv"
    inputs = [maker.inputs[0], maker.inputs[1], editor.constant(np.ascontiguousarray(bias), f"{base}_bias")]
    attributes = {name: attribute(maker, name) for name in maker.attributes}
    editor.release(maker)
    made = editor.node(node, "Conv", inputs, out, attributes, hint=base)
    if transpose is not None:
        made = editor.transpose(node, made, perm, hint=transpose.name or "Transpose")
    return made, f"bias of {base}"


PASS = Pass(id="fold-channel-add", summary="Conv + constant per-channel Add -> bias", exactness=ROUNDING, apply=apply)
