"""Normalise small things that kill the tool although the checker passes.

Before -> After: Clip bounds of rank 1 -> rank 0; missing or duplicate node names -> unique names; int64 axis of
CumSum and int64 indices of ScatterElements -> int32; `auto_pad` and `ceil_mode` -> explicit pads; Gather from a bool
constant -> from floats, and Cast.
Why: the tool dies late ("min should be a scalar"), reports nodes by names that are not unique, and counts a ceil_mode
window that starts in the end padding, which onnxruntime drops.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, remove_unused, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult

_INT32_INPUTS = {"CumSum": (1,), "ScatterElements": (1,)}
_WINDOWED = frozenset({"Conv", "MaxPool", "AveragePool", "LpPool"})


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """One walk."""
    result = PassResult()
    graph = model.graph
    editor = Editor(graph, PASS.id)
    seen: set[str] = set()
    for index, node in enumerate(graph):
        if not node.name or node.name in seen:
            before = node.name or "no name"
            node.name = _free_name(node.name or f"{node.op_type}_{index}", seen)
            result.apply(node, before, node.name)
        seen.add(node.name)
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type == "Clip":
            _scalar_bounds(node, editor, result)
        elif node.op_type in _INT32_INPUTS:
            _narrow(node, editor, result)
        elif node.op_type == "Gather" and node.inputs[0] is not None and node.inputs[0].dtype == ir.DataType.BOOL:
            _gather_floats(node, editor, result)
        elif node.op_type in _WINDOWED and attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
            _explicit_pads(node, result)
        elif node.op_type in ("MaxPool", "AveragePool") and attribute(node, "ceil_mode", 0):
            _floor_windows(node, result)
    remove_unused(graph)
    return result


def _free_name(base: str, seen: set[str]) -> str:
    name, count = base, 1
    while name in seen:
        name, count = f"{base}_{count}", count + 1
    return name


def _scalar_bounds(node: ir.Node, editor: Editor, result: PassResult) -> None:
    for index in (1, 2):
        array = constant_of(input_at(node, index))
        if array is not None and array.ndim > 0 and array.size == 1:
            node.replace_input_with(index, editor.constant(array.reshape(()), f"{node.name}_bound"))
            result.apply(node, f"bound of rank {array.ndim}", "scalar")


def _narrow(node: ir.Node, editor: Editor, result: PassResult) -> None:
    for index in _INT32_INPUTS[node.op_type]:
        array = constant_of(input_at(node, index))
        if array is not None and array.dtype == np.int64 and np.all(np.abs(array) < 1 << 31):
            node.replace_input_with(index, editor.constant(array.astype(np.int32), f"{node.name}_int32"))
            result.apply(node, f"input {index} int64", "int32")


def _gather_floats(node: ir.Node, editor: Editor, result: PassResult) -> None:
    """The runtime's Gather takes no bool."""
    data, source = constant_of(node.inputs[0]), node.inputs[0]
    shape, out = shape_of(node.outputs[0]), node.outputs[0]
    if data is not None:
        floats = editor.constant(data.astype(np.float32), f"{node.name}_floats")
    else:
        to, hint = ir.DataType.FLOAT, f"{node.name}_floats"
        floats = editor.node(node, "Cast", [source], shape_of(source), {"to": int(to)}, hint=hint, dtype=to)
    attributes = {"axis": attribute(node, "axis", 0)}
    taken = editor.node(node, "Gather", [floats, node.inputs[1]], shape, attributes, hint=f"{node.name}_float")
    back = editor.node(
        node, "Cast", [taken], shape, {"to": int(ir.DataType.BOOL)}, hint=node.name or "", dtype=out.dtype
    )
    editor.replace(out, back)
    result.apply(node, "Gather of bool", "Gather of float, Cast")


def _explicit_pads(node: ir.Node, result: PassResult) -> None:
    mode = attribute(node, "auto_pad")
    size, out = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    kernel = attribute(node, "kernel_shape") or (shape_of(input_at(node, 1)) or ())[2:]
    if size is None or out is None or not kernel:
        result.skip(node, "its shapes are not known")
        return
    rank = len(kernel)
    strides, dilations = attribute(node, "strides") or [1] * rank, attribute(node, "dilations") or [1] * rank
    begin, end = [], []
    for axis in range(rank):
        span = (out[axis + 2] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        total = 0 if mode == "VALID" else max(0, span - size[axis + 2])
        small, large = total // 2, total - total // 2
        begin.append(large if mode == "SAME_LOWER" else small)
        end.append(small if mode == "SAME_LOWER" else large)
    node.attributes.pop("auto_pad")
    node.attributes["pads"] = ir.AttrInt64s("pads", [*begin, *end])
    result.apply(node, f"auto_pad {mode}", f"pads {[*begin, *end]}")


def _floor_windows(node: ir.Node, result: PassResult) -> None:
    """The same windows without ceil_mode: padding at the end that lets exactly these windows fit."""
    size, out, kernel = shape_of(node.inputs[0]), shape_of(node.outputs[0]), attribute(node, "kernel_shape")
    if size is None or out is None or not kernel:
        result.skip(node, "its shapes are not known")
        return
    rank = len(kernel)
    strides, dilations = attribute(node, "strides") or [1] * rank, attribute(node, "dilations") or [1] * rank
    given = attribute(node, "pads") or [0] * 2 * rank
    ends = list(given[rank:])
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        needed = (out[axis + 2] - 1) * strides[axis] + reach - size[axis + 2] - given[axis]
        if (size[axis + 2] + given[axis] + ends[axis] - reach) // strides[axis] + 1 != out[axis + 2]:
            ends[axis] = max(needed, 0)
    if ends != given[rank:] and (
        node.op_type == "AveragePool" or any(e >= k for e, k in zip(ends, kernel, strict=True))
    ):
        return  # an overrun counts in no mean, padding may: replace-average-pool knows both
    node.attributes.pop("ceil_mode")
    node.attributes["pads"] = ir.AttrInt64s("pads", [*given[:rank], *ends])
    result.apply(node, "ceil_mode", f"pads {[*given[:rank], *ends]}")


PASS = Pass(
    id="normalize-details",
    summary="scalar Clip bounds, unique node names, int32 axes, explicit pads, no ceil_mode",
    exactness=BIT_EXACT,
    apply=apply,
)
