"""Bring an old model up to the target's operator set.

Before -> After: Clip, Pad, Slice, TopK with attributes -> with inputs; Upsample, Resize-10 -> Resize-11; Scatter ->
ScatterElements; then the opset is 11.
Why: the passes and the tool's checks speak one operator set; the tool takes 9 and 10, but later passes would not.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, input_at, remove_unused, shape_of, used_opset
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult
from boardlift_transform.refusal import Refusal

OLDEST = 7
TARGET = 11
Parts = tuple[str, "list[ir.Value | None]", dict[str, Any]]


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite what changed between opset 7 and 11; newer models are left alone."""
    result = PassResult()
    before = used_opset(model)
    target = min(int(parameters.get("opset", TARGET)), TARGET)
    if before >= target:
        return result
    if before < OLDEST:
        raise Refusal(
            "OPSET_TOO_OLD",
            f"opset {before} is older than {OLDEST}",
            remedy="export with opset 9 or newer",
            metadata={"opset": before},
        )
    if target != TARGET:
        raise Refusal("OPSET_TOO_OLD", f"opset {before} cannot be brought to {target}", remedy="ask for opset 11")
    editor = Editor(model.graph, PASS.id)
    for node in list(model.graph):
        rule = _RULES.get(node.op_type)
        parts = rule(node, editor) if rule is not None else None
        if parts is None:
            continue
        op, inputs, attributes = parts
        editor.release(node)
        made = editor.node_outputs(
            node,
            op,
            inputs,
            [shape_of(o) for o in node.outputs],
            attributes,
            hint=node.name or op,
            dtype=node.outputs[0].dtype,
        )
        for old, new in zip(node.outputs, made, strict=False):
            new.type = old.type
            editor.replace(old, new)
        result.apply(node, f"{node.op_type}-{before}", f"{op}-{TARGET}")
    remove_unused(model.graph)
    model.graph.opset_imports[""] = TARGET
    model.graph.opset_imports.pop("ai.onnx", None)
    result.apply("graph", f"opset {before}", f"opset {TARGET}")
    return result


def _ints(editor: Editor, node: ir.Node, values: list[int], what: str) -> ir.Value:
    return editor.constant(np.asarray(values, np.int64), f"{node.outputs[0].name}_{what}")


def _float(editor: Editor, node: ir.Node, value: float | Array, what: str) -> ir.Value:
    dtype = (node.inputs[0].dtype or ir.DataType.FLOAT).numpy() if node.inputs[0] is not None else np.float32
    return editor.constant(np.asarray(value, dtype), f"{node.outputs[0].name}_{what}")


def _clip(node: ir.Node, editor: Editor) -> Parts | None:
    if len(node.inputs) > 1:
        return None
    low, high = attribute(node, "min"), attribute(node, "max")
    inputs: list[ir.Value | None] = [node.inputs[0]]
    inputs.append(None if low is None else _float(editor, node, low, "min"))
    inputs.append(None if high is None else _float(editor, node, high, "max"))
    while inputs[-1] is None:
        inputs.pop()
    return "Clip", inputs, {}


def _pad(node: ir.Node, editor: Editor) -> Parts | None:
    pads = attribute(node, "pads")
    if pads is None:
        return None
    mode = attribute(node, "mode", "constant")
    inputs = [node.inputs[0], _ints(editor, node, pads, "pads")]
    if mode == "constant":
        inputs.append(_float(editor, node, float(attribute(node, "value", 0.0)), "value"))
    return "Pad", inputs, {"mode": mode}


def _slice(node: ir.Node, editor: Editor) -> Parts | None:
    starts = attribute(node, "starts")
    if starts is None:
        return None
    axes = attribute(node, "axes") or list(range(len(starts)))
    parts = [
        _ints(editor, node, v, what)
        for v, what in ((starts, "starts"), (attribute(node, "ends"), "ends"), (axes, "axes"))
    ]
    return "Slice", [node.inputs[0], *parts], {}


def _topk(node: ir.Node, editor: Editor) -> Parts | None:
    k = attribute(node, "k")
    return (
        None
        if k is None
        else ("TopK", [node.inputs[0], _ints(editor, node, [k], "k")], {"axis": attribute(node, "axis", -1)})
    )


def _resize(node: ir.Node, editor: Editor) -> Parts | None:
    if node.op_type == "Resize" and len(node.inputs) != 2:
        return None
    listed = attribute(node, "scales")
    scales = input_at(node, 1)
    if listed is not None:
        scales = editor.constant(np.asarray(listed, np.float32), f"{node.outputs[0].name}_scales")
    roi = editor.constant(np.zeros(0, np.float32), f"{node.outputs[0].name}_roi")
    mode = attribute(node, "mode", "nearest")
    attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric"}
    if mode == "nearest":
        attributes["nearest_mode"] = "floor"
    return "Resize", [node.inputs[0], roi, scales], attributes


def _scatter(node: ir.Node, editor: Editor) -> Parts:
    return "ScatterElements", list(node.inputs), {"axis": attribute(node, "axis", 0)}


_RULES: dict[str, Callable[[ir.Node, Editor], Parts | None]] = {
    "Clip": _clip,
    "Pad": _pad,
    "Slice": _slice,
    "TopK": _topk,
    "Upsample": _resize,
    "Resize": _resize,
    "Scatter": _scatter,
}

PASS = Pass(
    id="upgrade-opset",
    summary="bring a model of opset 7 to 10 up to 11",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(Parameter("opset", "target version; default 11"),),
)
