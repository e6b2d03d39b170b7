"""Fold BatchNormalization into the Conv, ConvTranspose or Gemm before it.

Before -> After: `Conv(x, W, b) -> BatchNormalization(s, B, m, v)` -> `Conv(x, W * s/sqrt(v+e), (b - m) * s/sqrt(v+e)
+ B)`.
Why: one row less; an unfolded BatchNormalization is quantised on its own.
Exactness: float rounding. The factors are computed in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, only_use, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes

_MAKERS = frozenset({"Conv", "ConvTranspose", "Gemm"})


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every pair whose first node is read by nobody else."""
    return rewrite_nodes(model, PASS.id, {"BatchNormalization"}, _fold)


def _fold(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    maker = x.producer() if x is not None else None
    if x is None or maker is None or maker.op_type not in _MAKERS:
        result.skip(node, "no Conv or Gemm directly before it")
        return None
    if only_use(x) is not node or len(node.outputs) > 1 or attribute(node, "training_mode", 0):
        result.skip(node, f"the result of {maker.op_type} is read elsewhere too, or the node trains")
        return None
    parts = [constant_of(v) for v in node.inputs[1:5]]
    weight, bias = constant_of(input_at(maker, 1)), constant_of(input_at(maker, 2))
    if any(p is None for p in parts) or weight is None or (input_at(maker, 2) is not None and bias is None):
        result.skip(node, "weights or statistics are computed")
        return None
    scale, shift, mean, variance = (np.asarray(p, np.float64) for p in parts)
    factor = scale / np.sqrt(variance + float(attribute(node, "epsilon", 1e-5)))
    folded = scaled_weight(maker, weight, factor)
    if folded is None or (bias is not None and bias.size not in (1, factor.size)):
        result.skip(node, f"this form of {maker.op_type} cannot take the factors")
        return None
    beta = float(attribute(maker, "beta", 1.0)) if maker.op_type == "Gemm" else 1.0
    old = np.zeros(1) if bias is None else bias.astype(np.float64).reshape(-1) * beta
    moved = np.broadcast_to((old - mean) * factor + shift, factor.shape)
    base = maker.name or maker.op_type
    attributes = {name: attribute(maker, name) for name in maker.attributes}
    if maker.op_type == "Gemm":
        attributes["beta"] = 1.0
    inputs = [
        maker.inputs[0],
        editor.constant(folded.astype(weight.dtype), f"{base}_weight"),
        editor.constant(moved.astype(weight.dtype), f"{base}_bias"),
    ]
    editor.release(maker)
    made = editor.node(node, maker.op_type, inputs, shape_of(node.outputs[0]) or shape_of(x), attributes, hint=base)
    return made, f"part of {base}"


def scaled_weight(maker: ir.Node, weight: Array, factor: Array) -> Array | None:
    """The weight with every output channel multiplied by its factor."""
    wide = weight.astype(np.float64)
    if maker.op_type == "Conv":
        if weight.shape[0] != factor.size:
            return None
        return np.asarray(wide * factor.reshape(-1, *[1] * (weight.ndim - 1)))
    if maker.op_type == "ConvTranspose":
        group = int(attribute(maker, "group", 1))
        per_group = weight.shape[1]
        if group * per_group != factor.size:
            return None
        split = wide.reshape(group, -1, *weight.shape[1:])
        shaped = factor.reshape(group, 1, per_group, *[1] * (weight.ndim - 2))
        return np.asarray((split * shaped).reshape(weight.shape))
    rows = bool(attribute(maker, "transB", 0))
    if weight.shape[0 if rows else 1] != factor.size:
        return None
    return np.asarray(wide * (factor.reshape(-1, 1) if rows else factor.reshape(1, -1)))


PASS = Pass(
    id="fold-batchnorm", summary="BatchNormalization into Conv, ConvTranspose, Gemm", exactness=ROUNDING, apply=apply
)
