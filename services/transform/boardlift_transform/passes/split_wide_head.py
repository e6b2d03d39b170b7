"""Split the input channels of a wide layer whose result leaves the BPU.

Before -> After: `Conv(x [N,512,1,1]) -> output` -> `Split(x) -> Conv(x1) + Conv(x2) -> Add -> output`, 256 channels
each.
Why: under int16 such a layer falls back to int8 without a word when it has more than 256 input channels; in a wide
policy that is the layer that sets the actions. Measured: every row int16, half the L1 error, 8 % more time.
Exactness: float rounding (the sum is taken in another order).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, node_label, rewrite_nodes

CHANNELS = 256
_PASSIVE = frozenset({"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Relu", "Clip"})
_CPU = frozenset({"Softmax", "LogSoftmax", "Greater", "Less", "Equal", "Cast", "NonZero", "TopK", "OneHot", "CumSum"})
_RULES = ("Conv",)


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite ungrouped Conv nodes with more than `channels` inputs that end on the CPU or in an output."""
    limit = int(parameters.get("channels", CHANNELS))

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _split(node, editor, result, limit)

    return rewrite_nodes(model, PASS.id, _RULES, rule)


def _split(node: ir.Node, editor: Editor, result: PassResult, limit: int) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    shape, weight = shape_of(x), constant_of(input_at(node, 1))
    if x is None or shape is None or weight is None or len(shape) != 4 or weight.shape[1] <= limit:
        return None
    if int(attribute(node, "group", 1)) != 1 or not leaves_bpu(node.outputs[0]):
        return None
    parts = -(-shape[1] // limit)
    widths = [shape[1] // parts + (1 if i < shape[1] % parts else 0) for i in range(parts)]
    base = node.name or "Conv"
    shapes = [[shape[0], w, *shape[2:]] for w in widths]
    pieces = editor.node_outputs(node, "Split", [x], shapes, {"axis": 1, "split": widths}, hint=f"{base}_split")
    attributes = {name: attribute(node, name) for name in node.attributes}
    out = shape_of(node.outputs[0])
    total: ir.Value | None = None
    start = 0
    for index, (piece, width) in enumerate(zip(pieces, widths, strict=True)):
        part = editor.constant(np.ascontiguousarray(weight[:, start : start + width]), f"{base}_weight_{index}")
        inputs: list[ir.Value | None] = [piece, part]
        if index == 0 and input_at(node, 2) is not None:
            inputs.append(node.inputs[2])
        made = editor.node(node, "Conv", inputs, out, attributes, hint=f"{base}_part_{index}")
        total = made if total is None else editor.node(node, "Add", [total, made], out, hint=f"{base}_sum")
        start += width
    if total is None:
        return None
    return total, f"{parts} Conv of {widths} channels, added ({node_label(node)} stays int16)"


def leaves_bpu(value: ir.Value) -> bool:
    """True when some path from the value reaches an output or a CPU operator through moves only."""
    pending, seen = [value], set()
    while pending:
        current = pending.pop()
        if current.is_graph_output():
            return True
        for use in current.uses():
            if use.node.op_type in _CPU:
                return True
            if use.node.op_type in _PASSIVE and use.node not in seen:
                seen.add(use.node)
                pending.extend(use.node.outputs)
    return False


PASS = Pass(
    id="split-wide-head",
    summary="wide last layers -> halves that stay int16, added",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("channels", "most input channels that stay int16; default 256"),),
)
