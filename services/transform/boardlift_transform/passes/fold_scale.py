"""Fold a constant factor into the Conv that it scales, through moves and products of feature maps.

Before -> After: `MatMul(q, k) -> Mul(c)`, where q is a `Conv(W, b)` behind Reshape and Transpose -> `Conv(c W, c b)`;
so does `Div(c)`, and a factor on q or k themselves. The factor is one number, and nobody else reads what it scales: a
part of a joint projection is quantised with the other parts, and scaled before that it would keep fewer steps.
Why: the scale of an attention is computed entry by entry as a depthwise Conv. Attention of 197 tokens, 3 heads of 64,
O1, estimated: int8 681 -> 617 us, int16 3598 -> 3243 us; 64 tokens, 4 heads of 32: 112 -> 107 and 255 -> 220 us.
The integers lose a rounding and gain nothing: cosine 0.999625 -> 0.999643 in int8, 0.999831 in int16 (simulated).
Exactness: float rounding (the factor moves into the sum).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import (
    Editor,
    constant_of,
    input_at,
    is_constant,
    only_use,
    remove_unused,
    shape_of,
)
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, node_label

LIMITS = np.finfo(np.float32)
MOVES = frozenset(["Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"])


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every Mul and Div by one finite constant other than zero."""
    result, editor = PassResult(), Editor(model.graph, PASS.id)
    for node in [n for n in model.graph if n.op_type in ("Mul", "Div") and n.domain in ("", "ai.onnx")]:
        x, factor = _scaled(node)
        out = node.outputs[0]
        if x is None or factor is None or shape_of(x) is None or shape_of(x) != shape_of(out):
            continue
        conv = _find_conv(x, node) if not out.is_graph_output() else None  # an output keeps the node that makes it
        if conv is None:
            continue
        _scale(conv, factor, editor)
        result.apply(node, node.op_type, f"factor {factor:.4g} in the weights of {node_label(conv)}")
        editor.replace(out, x)
        editor.drop(node)  # at once: it still reads what the next factor scales
    if result.applied:
        remove_unused(model.graph)
    return result


def _scaled(node: ir.Node) -> tuple[ir.Value | None, float | None]:
    """What is scaled, and by how much; (None, None) for other products."""
    pairs = [(node.inputs[0], input_at(node, 1))]
    if node.op_type == "Mul":
        pairs.append((input_at(node, 1), node.inputs[0]))
    for x, other in pairs:
        constant = constant_of(other)
        if x is None or constant is None or constant.size != 1 or is_constant(x) or x.dtype != ir.DataType.FLOAT:
            continue
        number = float(constant.reshape(-1)[0])
        if LIMITS.tiny <= abs(number) <= LIMITS.max:
            factor = number if node.op_type == "Mul" else 1 / number
            return (x, factor) if abs(factor) <= LIMITS.max else (None, None)
    return None, None


def _find_conv(value: ir.Value, reader: ir.Node) -> ir.Node | None:
    """The Conv whose result alone is scaled, behind moves and MatMul; None when there is none."""
    node = value.producer()
    if node is None or only_use(value) is not reader or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in MOVES and node.inputs[0] is not None:
        return _find_conv(node.inputs[0], node)
    if node.op_type == "MatMul":
        sides = (_find_conv(side, node) for side in node.inputs if side is not None)
        return next((conv for conv in sides if conv is not None), None)
    if node.op_type != "Conv" or not is_constant(input_at(node, 1)):
        return None
    bias = input_at(node, 2)
    return node if bias is None or is_constant(bias) else None


def _scale(conv: ir.Node, factor: float, editor: Editor) -> None:
    for index in (1, 2):
        old = input_at(conv, index)
        array = constant_of(old)
        if old is None or array is None:
            continue
        made = (array.astype(np.float64) * factor).astype(np.float32)
        conv.replace_input_with(index, editor.constant(made, f"{old.name}_scaled"))


PASS = Pass(
    id="fold-scale",
    summary="constant factor on attention scores or projections -> into the weights of the Conv before",
    exactness=ROUNDING,
    apply=apply,
)
