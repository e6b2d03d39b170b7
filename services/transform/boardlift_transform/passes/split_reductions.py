"""Reduce over one axis at a time where the tool takes only that.

Before -> After: `ReduceMax(x, axes [2,3])` -> `ReduceMax(ReduceMax(x, 3), 2)`; the same for ReduceSum, ReduceL1 and
ReduceL2, for ReduceMean over three or more axes, or two that are not H and W; ReduceSumSquare ->
`ReduceSum(x * x)`; axes `[-1, -2]` -> `[2, 3]`.
Why: all of these but ReduceMean over H and W run on the CPU, single axes on the BPU: an island per block of ConvNeXt v2
and XCiT, and in the mean that JAX writes as a sum and a division. So does a ReduceMean whose two axes do not ascend
(five islands in a mobilenet as torch's new exporter writes it). A mean over channels and H behind a ConvTranspose,
taken from what it is a mean of, ends the tool's compiler in int8 ("invalid inout index", signal 6, measured).
Exactness: bit-exact for maxima, float rounding for sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes

_LIMITS = {"ReduceMax": 1, "ReduceMean": 2, "ReduceSum": 1, "ReduceSumSquare": 0, "ReduceL1": 1, "ReduceL2": 1}


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite float reductions with static shapes."""
    return rewrite_nodes(model, PASS.id, set(_LIMITS), _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x, out = node.inputs[0], node.outputs[0]
    shape, after = shape_of(x), shape_of(out)
    if x is None or shape is None or after is None or x.dtype != ir.DataType.FLOAT or len(node.inputs) > 1:
        return None
    given = attribute(node, "axes")
    axes = sorted({a % len(shape) for a in given} if given else range(len(shape)), reverse=True)
    long_axes = [a for a in axes if shape[a] != 1]
    base, operator = node.name or node.op_type, node.op_type
    across = len(shape) == 4 and len(long_axes) == 2 and long_axes != [3, 2]
    if len(long_axes) <= (1 if across else _LIMITS[node.op_type]):
        if not given or [a % len(shape) for a in given] == axes[::-1]:
            return None
        attributes = {"axes": axes[::-1], "keepdims": int(attribute(node, "keepdims", 1))}
        return editor.node(node, operator, [x], after, attributes, hint=base), f"axes {axes[::-1]}"
    if operator == "ReduceSumSquare":
        x, operator = editor.node(node, "Mul", [x, x], shape, hint=f"{base}_square"), "ReduceSum"
    value, kept = x, list(shape)
    for axis in long_axes:
        kept[axis] = 1
        value = editor.node(node, operator, [value], list(kept), {"axes": [axis], "keepdims": 1}, hint=base)
    if tuple(kept) != after:
        value = editor.reshape(node, value, after, hint=f"{base}_shape")
    return value, f"{len(long_axes)} x {operator} over one axis"


PASS = Pass(
    id="split-reductions", summary="reductions over several axes -> one axis at a time", exactness=ROUNDING, apply=apply
)
