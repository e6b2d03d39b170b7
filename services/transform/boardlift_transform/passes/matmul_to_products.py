"""Write a MatMul of two feature maps as products and a sum, which stay int16.

Before -> After: `MatMul(A [N,H,M,K], B [N,H,K,L])` -> `Conv(Mul(A' [N,H*K,M,1], B' [N,H*K,1,L]), ones, group=H)`, where
A' and B' are A and B with the summed axis in front (Transpose, Reshape).
Why: under int16 the tool computes a MatMul of two feature maps (attention) in int8; every row of this form is int16, in
one subgraph. Measured on two products: 16 tokens, 2 heads of 32, O2: 33.8 -> 68.0 us, L1 error 0.0163 -> 0.0078; 64
tokens, 1 head of 32, O0: 280 -> 1100 us, 0.0176 -> 0.0101. It makes H*M*K*L products, so it is done up to `elements`
of them only, where the doubled accuracy costs about twice the time. Planned for int16 only.
Exactness: float rounding (the sum is taken in another order).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, is_constant, shape_of
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, rewrite_nodes

ELEMENTS = 1 << 15


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite 4-D MatMul nodes whose operands are both computed and whose products are few enough."""
    limit = int(parameters.get("elements", ELEMENTS))

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _rewrite(node, editor, result, limit)

    return rewrite_nodes(model, PASS.id, {"MatMul"}, rule)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult, limit: int) -> tuple[ir.Value, str] | None:
    left, right = node.inputs
    a, b, made = shape_of(left), shape_of(right), shape_of(node.outputs[0])
    if left is None or right is None or a is None or b is None or made is None or is_constant(left):
        return None
    if is_constant(right) or left.dtype != ir.DataType.FLOAT:
        return None
    if len(a) != 4 or len(b) != 4 or a[:2] != b[:2]:
        result.skip(node, f"{list(a)} x {list(b)} is not one 4-D matrix per head")
        return None
    heads, rows, depth, columns = a[1], a[2], a[3], b[3]
    elements = math.prod(made) * depth
    if elements > limit:
        result.skip(node, f"{elements} products, more than {limit}: int8 here")
        return None
    base = node.name or "MatMul"
    turned = editor.transpose(node, left, [0, 1, 3, 2], hint=f"{base}_turn")
    tall = editor.reshape(node, turned, [a[0], heads * depth, rows, 1], hint=f"{base}_rows")
    flat = editor.reshape(node, right, [a[0], heads * depth, 1, columns], hint=f"{base}_columns")
    products = editor.node(node, "Mul", [tall, flat], [a[0], heads * depth, rows, columns], hint=f"{base}_products")
    ones = editor.constant(np.ones((heads, depth, 1, 1), np.float32), f"{base}_ones")
    square = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "group": heads}
    value = editor.node(node, "Conv", [products, ones], made, square, hint=base)
    return value, f"{elements} products, summed by a Conv of ones in {heads} groups"


PASS = Pass(
    id="matmul-to-products",
    summary="MatMul of two feature maps -> Mul and Conv of ones, which stay int16",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("elements", f"most products of one MatMul; default {ELEMENTS}"),),
)
