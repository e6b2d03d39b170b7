"""1-D convolutions and pools as 2-D ones of height 1."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import attribute, constant_of, input_at, shape_of
from boardlift_transform.lift.twins import CHANNELS_TIME, Twins


def widened(node: ir.Node) -> dict[str, Any]:
    """The window attributes of a 1-D operator with a height-1 axis in front."""
    out: dict[str, Any] = {name: attribute(node, name) for name in node.attributes}
    for name, fill in (
        ("kernel_shape", 1),
        ("strides", 1),
        ("dilations", 1),
        ("output_padding", 0),
        ("output_shape", 1),
    ):
        if name in out:
            out[name] = [fill, *out[name]]
    if "pads" in out:
        begin, end = out["pads"]
        out["pads"] = [0, begin, 0, end]
    return {name: value for name, value in out.items() if value is not None}


def lift_convolution(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Conv1d `[N,C,T]`, weight `[O,I,k]` -> Conv2d `[N,C,1,T]`, weight `[O,I,1,k]`."""
    x, out = node.inputs[0], node.outputs[0]
    weight = constant_of(input_at(node, 1))
    if x is None or weight is None or len(shape_of(x) or ()) != 3 or twins.axes(x) != CHANNELS_TIME:
        return None
    base = node.name or node.op_type
    key = ("window", node.inputs[1])
    wide = twins.shared(key, lambda: weight.reshape(*weight.shape[:2], 1, weight.shape[2]), f"{base}_weight")
    attributes = widened(node)
    attributes.setdefault("kernel_shape", [1, weight.shape[2]])
    inputs = [twins.twin(x, node), wide, *node.inputs[2:]]
    return [twins.editor.node(node, node.op_type, inputs, twins.shape4(out), attributes, hint=node.name or "")]


def lift_pool(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Pool1d -> Pool2d of height 1; a MaxPool that also returns indices is left alone."""
    x, out = node.inputs[0], node.outputs[0]
    if x is None or len(node.outputs) != 1 or len(shape_of(x) or ()) != 3 or twins.axes(x) != CHANNELS_TIME:
        return None
    return [
        twins.editor.node(
            node, node.op_type, [twins.twin(x, node)], twins.shape4(out), widened(node), hint=node.name or ""
        )
    ]


def lift_global_pool(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Global pools reduce the length-1 axis too, which changes nothing."""
    x, out = node.inputs[0], node.outputs[0]
    if x is None or len(shape_of(x) or ()) != 3 or twins.axes(x) != CHANNELS_TIME:
        return None
    return [twins.editor.node(node, node.op_type, [twins.twin(x, node)], twins.shape4(out), hint=node.name or "")]
