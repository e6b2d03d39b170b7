"""Give every reader of a scaled tensor of one channel a scaling of its own.

Before -> After: `z = Mul(x [N,1,H,W], constant)` read by two nodes -> `Mul` twice, each read by one.
Why: where one of them reads it across more channels and the other one channel at a time, as `(x - min) / (max - min)`
over the channels does, the tool's compiler dies in int8 ("bias_left_shift is not equal to kernel num", signal 6, at
every level); with a Mul for each it does not (measured, bit-equal code).
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, is_constant, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Copy Mul and Div by a constant, of 4-D tensors of one channel."""
    return rewrite_nodes(model, PASS.id, {"Mul", "Div"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    out, (left, right) = node.outputs[0], node.inputs
    shape = shape_of(out)
    if shape is None or len(shape) != 4 or shape[1] != 1 or shape_of(left) != shape or not is_constant(right):
        return None
    readers = [use for use in out.uses() if use.node.graph is node.graph]
    if len(readers) < 2 or len(readers) != len(out.uses()) or is_constant(left):
        return None
    base = node.name or node.op_type
    for number, use in enumerate(readers[1:], start=1):
        copy = editor.node(node, node.op_type, [left, right], shape, hint=f"{base}_{number}")
        use.node.replace_input_with(use.idx, copy)
    attributes = {name: attribute(node, name) for name in node.attributes}
    return editor.node(
        node, node.op_type, [left, right], shape, attributes, hint=base
    ), f"{len(readers)} x {node.op_type}"


PASS = Pass(
    id="copy-scale", summary="scaled tensor of one channel, read twice -> one scaling per reader", exactness=BIT_EXACT,
    apply=apply,
)  # fmt: skip
