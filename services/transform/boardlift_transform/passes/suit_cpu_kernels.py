"""Give nodes that end on the board's CPU the form that its kernels take.

Before -> After: Resize without an `extrapolation_value` that nothing reads; computed int64 indices of ScatterElements
-> Cast to int32.
Why: the checker places such nodes on the CPU as if all were well, and then refuses them ("Resize not support this
attribute=extrapolation_value", "ScatterElements[1] currently only support INT32").
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, input_at, is_constant, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """One walk."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    for node in list(model.graph):
        if node.op_type == "Resize":
            _drop_unread(node, result)
        elif node.op_type == "ScatterElements":
            _narrow(node, editor, result)
    return result


def _drop_unread(node: ir.Node, result: PassResult) -> None:
    """Only `tf_crop_and_resize` reads the value."""
    if attribute(node, "coordinate_transformation_mode") != "tf_crop_and_resize" and node.attributes.pop(
        "extrapolation_value", None
    ):
        result.apply(node, "extrapolation_value that nothing reads", "left out")


def _narrow(node: ir.Node, editor: Editor, result: PassResult) -> None:
    index = input_at(node, 1)
    if index is None or is_constant(index) or index.dtype != ir.DataType.INT64:
        return
    to, hint = ir.DataType.INT32, f"{node.name or node.op_type}_int32"
    cast = editor.node(node, "Cast", [index], shape_of(index), {"to": int(to)}, hint=hint, dtype=to)
    node.replace_input_with(1, cast)
    result.apply(node, "indices int64", "Cast to int32")


PASS = Pass(
    id="suit-cpu-kernels",
    summary="no unread extrapolation_value in Resize, int32 indices for ScatterElements",
    exactness=BIT_EXACT,
    apply=apply,
)
