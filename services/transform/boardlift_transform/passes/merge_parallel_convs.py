"""Add the weights of convolutions whose results are added.

Before -> After: `Conv(x, W1) + Conv(x, W2)` -> `Conv(x, W1 + W2)`, the smaller kernel in the place it has in the larger
one; `Conv(x, W) + BatchNormalization(x)` -> `Conv(x, W + diagonal)`.
Why: RepVGG, MobileOne, RepViT and FastViT are trained with parallel branches and mean to run without them; exported
as they are trained, every branch is computed and rounded by itself. MobileOne-S0 at 224x224, int8, O1: 1670.8 -> 967.6
us (estimated). Weights are rounded to int8 in both precisions, so a branch that is much stronger than the other, as the
normalisation often is, stays: a factor of 1.1 beside weights of 0.08 would cost int16 4 dB (simulated).
Exactness: float rounding. Sums are taken in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, only_use, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes

MOST_NOISE = 4.0
"""Most that rounding the sum of the weights may add, against the weights one by one: 6 dB of one noise of several."""


@dataclass(frozen=True)
class Branch:
    """One of the results that are added, as a convolution."""

    source: ir.Value
    """What it reads."""
    weight: Array
    """`[C, C / group, kH, kW]`, float64."""
    bias: Array
    """`[C]`, float64."""
    first: tuple[int, int]
    """Rows and columns by which its first tap lies before the window's origin: the padding in front."""
    strides: tuple[int, int]
    """Strides."""
    group: int
    """Groups."""


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every Add, so that more than two branches are gathered one by one."""
    return rewrite_nodes(model, PASS.id, {"Add"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    makers = [v.producer() if v is not None and only_use(v) is node else None for v in node.inputs]
    if any(m is None for m in makers) or not any(m is not None and m.op_type == "Conv" for m in makers):
        return None
    shapes = [shape_of(v) for v in node.inputs]
    made, x = shape_of(node.outputs[0]), makers[0].inputs[0] if makers[0] is not None else None
    size = shape_of(x)
    if made is None or size is None or any(s != made for s in shapes) or len(made) != 4:
        return None
    convs = [_branch_of_conv(m) for m in makers if m is not None and m.op_type == "Conv"]
    if not convs or convs[0] is None:
        return None
    branches = [*convs, *(_branch_of_norm(m, convs[0]) for m in makers if m is not None and m.op_type != "Conv")]
    if len(branches) != 2 or any(b is None for b in branches):
        return None
    one, two = (b for b in branches if b is not None)
    if one.source is not two.source or (one.strides, one.group) != (two.strides, two.group):
        return None
    merged = _merge(one, two)
    if merged is None:
        result.skip(node, "neither kernel covers the other")
        return None
    if _noise(merged) > MOST_NOISE * (_noise(one) + _noise(two)):
        result.skip(node, "one branch is so much stronger that the other's weights would be lost in its rounding")
        return None
    for maker in makers:
        if maker is not None:
            editor.release(maker)
    kernel = merged.weight.shape[2:]
    ends = [max(0, (made[a + 2] - 1) * merged.strides[a] + kernel[a] - size[a + 2] - merged.first[a]) for a in (0, 1)]
    base = (makers[0].name if makers[0] is not None else "") or "Conv"
    inputs = [
        merged.source,
        editor.constant(merged.weight.astype(np.float32), f"{base}_weight"),
        editor.constant(merged.bias.astype(np.float32), f"{base}_bias"),
    ]
    attributes = {"kernel_shape": list(kernel), "strides": list(merged.strides), "pads": [*merged.first, *ends],
                  "dilations": [1, 1], "group": merged.group}  # fmt: skip
    return editor.node(node, "Conv", inputs, made, attributes, hint=base), f"one Conv of kernel {list(kernel)}"


def _branch_of_conv(node: ir.Node) -> Branch | None:
    weight, bias = constant_of(input_at(node, 1)), constant_of(input_at(node, 2))
    if weight is None or weight.ndim != 4 or weight.dtype != np.float32 or node.inputs[0] is None:
        return None
    if (input_at(node, 2) is not None and bias is None) or attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
        return None
    dilations = attribute(node, "dilations") or [1, 1]
    if any(d != 1 and k > 1 for d, k in zip(dilations, weight.shape[2:], strict=True)):
        return None
    pads, strides = attribute(node, "pads") or [0] * 4, attribute(node, "strides") or [1, 1]
    shift = np.zeros(len(weight)) if bias is None else bias.astype(np.float64)
    group = int(attribute(node, "group", 1))
    return Branch(node.inputs[0], weight.astype(np.float64), shift, (pads[0], pads[1]), tuple(strides), group)


def _branch_of_norm(node: ir.Node, beside: Branch) -> Branch | None:
    """A BatchNormalization as a Conv of kernel 1 in the groups of the Conv beside it."""
    parts = [constant_of(v) for v in node.inputs[1:5]]
    if node.op_type != "BatchNormalization" or node.inputs[0] is None or any(p is None for p in parts):
        return None
    if len(node.outputs) > 1 or attribute(node, "training_mode", 0):
        return None
    scale, shift, mean, variance = (np.asarray(p, np.float64) for p in parts)
    factor = scale / np.sqrt(variance + float(attribute(node, "epsilon", 1e-5)))
    channels, per_group = beside.weight.shape[:2]
    if factor.size != channels or per_group * beside.group != channels:
        return None
    weight = np.zeros((channels, per_group, 1, 1))
    weight[np.arange(channels), np.arange(channels) % per_group, 0, 0] = factor
    return Branch(node.inputs[0], weight, shift - mean * factor, (0, 0), beside.strides, beside.group)


def _merge(one: Branch, two: Branch) -> Branch | None:
    """The sum of two branches in the larger kernel, None when it does not cover the other."""
    large, small = sorted((one, two), key=lambda b: b.weight[0, 0].size, reverse=True)
    weight = large.weight.copy()
    at = [large.first[a] - small.first[a] for a in (0, 1)]
    if any(at[a] < 0 or at[a] + small.weight.shape[a + 2] > weight.shape[a + 2] for a in (0, 1)):
        return None
    rows, columns = small.weight.shape[2:]
    weight[:, :, at[0] : at[0] + rows, at[1] : at[1] + columns] += small.weight
    return Branch(large.source, weight, large.bias + small.bias, large.first, large.strides, large.group)


def _noise(branch: Branch) -> float:
    """Noise power, but for a factor, that rounding the weights to int8 per output channel adds to the results."""
    steps = np.abs(branch.weight).max(axis=(1, 2, 3))
    return float((np.square(steps) * np.count_nonzero(branch.weight, axis=(1, 2, 3))).sum())


PASS = Pass(
    id="merge-parallel-convs",
    summary="sums of Conv (and BatchNormalization) of the same input -> one Conv",
    exactness=ROUNDING,
    apply=apply,
)
