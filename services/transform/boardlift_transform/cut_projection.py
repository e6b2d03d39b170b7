"""A part of a projection's output channels: with rows of its weight and bias, or as a Slice of its output."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, input_at, shape_of

_OUTPUT_AXIS = {"MatMul": -1, "Gemm": -1, "Conv": 1}


def cut_projection(
    value: ir.Value, axis: int, rows: Array, anchor: ir.Node, editor: Editor, *, own: bool
) -> ir.Value | None:
    """The entries `rows` of an axis of `value`, inserted before `anchor`; None where neither form is there.

    Args:
        value: Output of a Gemm, MatMul or Conv, with or without an Add of a constant, or anything.
        axis: Axis of `value`, not negative.
        rows: Indices on it.
        anchor: Node before which all is inserted.
        editor: Editor of the graph.
        own: Make a projection of its own where the weights are constants.
    """
    shape = [len(rows) if i == axis else d for i, d in enumerate(shape_of(value) or ())]
    made = _project(value, axis, rows, shape, anchor, editor) if own else None
    if made is not None or (np.diff(rows) != 1).any():
        return made
    name = value.name or "joint"
    bounds = {"starts": int(rows[0]), "ends": int(rows[0]) + len(rows), "axes": axis, "steps": 1}
    given = [editor.constant(np.asarray([v], np.int64), f"{name}_{key}") for key, v in bounds.items()]
    return editor.node(anchor, "Slice", [value, *given], shape, hint=f"{name}_part")


def _project(
    value: ir.Value, axis: int, rows: Array, shape: list[int], anchor: ir.Node, editor: Editor
) -> ir.Value | None:
    node, rank = value.producer(), len(shape)
    if node is None or node.domain not in ("", "ai.onnx"):
        return None
    hint = node.name or node.op_type
    if node.op_type == "Add":
        index = next((i for i in (0, 1) if constant_of(node.inputs[i]) is not None), None)
        inner = node.inputs[1 - index] if index is not None else None
        if inner is None or index is None or axis != rank - 1 or shape_of(inner) != shape_of(value):
            return None
        made = _project(inner, axis, rows, shape, anchor, editor)
        bias = _rows(node.inputs[index], -1, rows, editor)
        return None if made is None else editor.node(anchor, "Add", [made, bias], shape, hint=hint)
    weight = constant_of(input_at(node, 1))
    if node.op_type not in _OUTPUT_AXIS or weight is None or axis != _OUTPUT_AXIS[node.op_type] % rank:
        return None
    fixed = all(v is None or constant_of(v) is not None for v in node.inputs[2:])
    if not fixed or weight.ndim < 2 or attribute(node, "group", 1) != 1:
        return None
    first = node.op_type == "Conv" or attribute(node, "transB", 0)
    given = [node.inputs[0], _rows(node.inputs[1], 0 if first else -1, rows, editor)]
    given += [_rows(v, -1, rows, editor) for v in node.inputs[2:]]
    attributes = {name: attribute(node, name) for name in node.attributes}
    return editor.node(anchor, node.op_type, given, shape, attributes, hint=hint)


def _rows(value: ir.Value | None, axis: int, rows: Array, editor: Editor) -> ir.Value | None:
    """These rows of a constant; one number for all rows stays."""
    array = constant_of(value)
    if value is None or array is None or not array.ndim or array.shape[axis] == 1:
        return value
    return editor.constant(np.ascontiguousarray(array.take(rows, axis)), f"{value.name}_part")
