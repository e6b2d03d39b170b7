"""Normalisation over the last axis in operators that every opset has."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, shape_of


def reduce_last(node: ir.Node, editor: Editor, op: str, x: ir.Value, opset: int) -> ir.Value:
    """A reduction over the last axis that keeps it; axes are an input of means and norms since opset 18."""
    shape = shape_of(x)
    kept = None if shape is None else [*shape[:-1], 1]
    if opset < 18:
        return editor.node(node, op, [x], kept, {"axes": [-1], "keepdims": 1})
    axes = editor.constant(np.asarray([-1], np.int64), f"{x.name}_last_axis")
    return editor.node(node, op, [x, axes], kept, {"keepdims": 1})


def normalise_last(
    node: ir.Node,
    editor: Editor,
    x: ir.Value,
    gamma: ir.Value | None,
    beta: ir.Value | None,
    epsilon: float,
    opset: int,
    *,
    centred: bool = True,
) -> ir.Value:
    """LayerNormalization over the last axis, or without the mean (RMS normalisation).

    Source, operator LayerNormalization: `(x - mean) / sqrt(mean((x - mean)^2) + epsilon) * gamma + beta`.
    """
    shape = shape_of(x)
    if centred:
        x = editor.node(node, "Sub", [x, reduce_last(node, editor, "ReduceMean", x, opset)], shape)
    square = editor.node(node, "Mul", [x, x], shape)
    mean = reduce_last(node, editor, "ReduceMean", square, opset)
    small = editor.constant(np.asarray(epsilon, np.float32), f"{node.name}_epsilon")
    root = editor.node(node, "Sqrt", [editor.node(node, "Add", [mean, small], shape_of(mean))], shape_of(mean))
    value = editor.node(node, "Div", [x, root], shape)
    for op, factor in (("Mul", gamma), ("Add", beta)):
        if factor is not None:
            value = editor.node(node, op, [value, factor], shape)
    return value
