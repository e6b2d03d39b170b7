"""Remove what does nothing: unused nodes, Identity, Dropout, casts and moves that cancel.

Before -> After: `Transpose(Transpose(x))`, `Reshape(Reshape(x))`, `Cast(Cast(x))`, `Identity(x)`, `Dropout(x)` -> one
node or none; equal constants are shared.
Why: every leftover is a row in the tool's table, and a Reshape or Cast between two BPU nodes can split the subgraph.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import (
    Editor,
    attribute,
    constant_of,
    input_at,
    is_constant,
    remove_unused,
    shape_of,
)
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult

_WIDENS = {
    (ir.DataType.FLOAT16, ir.DataType.FLOAT),
    (ir.DataType.FLOAT, ir.DataType.DOUBLE),
    (ir.DataType.INT32, ir.DataType.INT64),
    (ir.DataType.BOOL, ir.DataType.FLOAT),
    (ir.DataType.BOOL, ir.DataType.INT64),
}


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """One walk in graph order, so chains collapse in one go; then unused nodes go."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    for node in model.graph:
        if node.domain not in ("", "ai.onnx") or not node.inputs or node.inputs[0] is None:
            continue
        rule = _RULES.get(node.op_type)
        after = rule(node, editor) if rule is not None else None
        if after:
            result.apply(node, node.op_type, after)
    for name in remove_unused(model.graph):
        result.apply(name, "unused node", "removed")
    for value in list(model.graph.inputs):
        if not value.uses() and not value.is_graph_output() and len(model.graph.inputs) > 1:
            model.graph.inputs.remove(value)
            result.apply(value.name or "", "input", "removed, nothing needs it")
    return result


def _bypass(node: ir.Node, editor: Editor, source: ir.Value) -> bool:
    """Let readers take `source`; refuses when a graph output would need the node to keep its name."""
    output = node.outputs[0]
    producer = source.producer()
    if output.is_graph_output() and (producer is None or source.is_graph_output() or len(source.uses()) > 1):
        return False
    editor.replace(output, source)
    return True


def _identity(node: ir.Node, editor: Editor) -> str | None:
    source = node.inputs[0]
    if source is None or any(o.uses() for o in node.outputs[1:]):
        return None
    return "removed" if _bypass(node, editor, source) else None


def _dropout(node: ir.Node, editor: Editor) -> str | None:
    training = constant_of(input_at(node, 2))
    if input_at(node, 2) is not None and (training is None or bool(training.reshape(-1)[0])):
        return None
    return _identity(node, editor)


def _cast(node: ir.Node, editor: Editor) -> str | None:
    source = node.inputs[0]
    target = ir.DataType(int(attribute(node, "to", 0)))
    if source is None:
        return None
    if source.dtype == target:
        return _identity(node, editor)
    inner = source.producer()
    if inner is None or inner.op_type != "Cast" or inner.inputs[0] is None:
        return None
    origin = inner.inputs[0]
    if origin.dtype is None or (origin.dtype, source.dtype) not in _WIDENS:
        return None
    if origin.dtype == target:
        return "removed with its inverse" if _bypass(node, editor, origin) else None
    node.replace_input_with(0, origin)
    return "one Cast"


def _transpose(node: ir.Node, editor: Editor) -> str | None:
    source = node.inputs[0]
    perm = attribute(node, "perm")
    if source is None or perm is None:
        return None
    inner = source.producer()
    changed = None
    if inner is not None and inner.op_type == "Transpose" and attribute(inner, "perm") is not None and inner.inputs[0]:
        first = attribute(inner, "perm")
        perm = [first[p] for p in perm]
        source = inner.inputs[0]
        node.replace_input_with(0, source)
        node.attributes["perm"] = ir.AttrInt64s("perm", perm)
        changed = "one Transpose"
    if perm == list(range(len(perm))) and _bypass(node, editor, source):
        return "removed"
    return changed


def _reshape(node: ir.Node, editor: Editor) -> str | None:
    source, output = node.inputs[0], node.outputs[0]
    target = constant_of(input_at(node, 1))
    if source is None or target is None or shape_of(output) is None or 0 in target:
        return None
    changed = None
    inner = source.producer()
    origin = inner.inputs[0] if inner is not None and inner.inputs else None
    if (
        inner is not None
        and origin is not None
        and (inner.op_type in ("Reshape", "Flatten", "Squeeze", "Unsqueeze") or _moves_only_ones(inner))
        and not is_constant(origin)
        and shape_of(origin) is not None
    ):
        node.replace_input_with(0, origin)
        source, changed = origin, "one Reshape"
    if shape_of(source) == shape_of(output) and _bypass(node, editor, source):
        return "removed"
    return changed


def _moves_only_ones(node: ir.Node) -> bool:
    """True for a Transpose that keeps the order of all axes longer than 1: to a Reshape it is no change."""
    shape, perm = shape_of(node.inputs[0]), attribute(node, "perm")
    if node.op_type != "Transpose" or shape is None or perm is None:
        return False
    long_axes = [p for p in perm if shape[p] != 1]
    return long_axes == sorted(long_axes)


_RULES = {
    "Identity": _identity,
    "Dropout": _dropout,
    "Cast": _cast,
    "Transpose": _transpose,
    "Reshape": _reshape,
}

PASS = Pass(
    id="eliminate-dead",
    summary="remove unused nodes, Identity, Dropout, and casts, transposes and reshapes that cancel",
    exactness=BIT_EXACT,
    apply=apply,
)
