"""Take the quantisation out of a quantised model: what is left is the float model inside it.

Before -> After: `DequantizeLinear(QuantizeLinear(x))` -> `Clip(x)` to the range of the whole numbers, also with moves
(Reshape, MaxPool, ...) in between, or nothing where interval arithmetic shows that no value leaves the range by more
than half a step; `DequantizeLinear(constant)` -> float constant; `DequantizeLinear(whole number)`
-> Cast, Sub, Mul.
Why: the toolchain quantises float models only and dies on QuantizeLinear ("not support these cpu operators"). The Clip
stays since quantisers drop a Relu whose lower bound the range gives, and costs time where it parts what the BPU fuses:
mobilenet from QDQ in int8, one between every HardSigmoid and its Mul, 301.3 us, without those 182.2 us (estimated).
Exactness: float rounding for constants; each pair within half a quantisation step of what stood there. The transform
proves all other passes against the model that this one leaves, and measures how far that one is from the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, remove_unused, shape_of, used_opset
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, node_label
from boardlift_transform.quantised_region import (
    DEQUANTISE,
    DOMAINS,
    QUANTISE,
    carry,
    ends_of,
    has_scale,
    kind_of,
    scale_of,
    source_of,
)
from boardlift_transform.quantised_values import RANGES, dequantise, fake_quantise, read_constant
from boardlift_transform.refusal import Refusal
from boardlift_transform.value_range import range_of


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Replace quantisers, then dequantisers. Refusal: QUANTISATION_SCALE for a scale that is not finite, or not > 0."""
    result = PassResult()
    graph, opset = model.graph, used_opset(model)
    editor = Editor(graph, PASS.id)
    nodes = [n for n in graph if n.domain in DOMAINS and n.op_type in (QUANTISE, DEQUANTISE)]
    for node in nodes:
        _check_scale(node)
    for node in (n for n in nodes if n.op_type == QUANTISE):
        _replace_quantiser(node, editor, opset, result)
    for node in (n for n in nodes if n.op_type == DEQUANTISE):
        if node.graph is not None:
            _replace_dequantiser(node, editor, result)
    if result.applied:
        remove_unused(graph)
    return result


def _check_scale(node: ir.Node) -> None:
    given = scale_of(node)
    scale = np.ones(1) if given is None else np.asarray(given[0], np.float64)
    if not np.all(np.isfinite(scale) & (scale > 0)):
        raise Refusal(
            "QUANTISATION_SCALE",
            f"node {node_label(node)} has a scale of {scale.reshape(-1)[0]:g}: the quantiser saw infinite values, as in"
            " a mask of -inf, or none",
            remedy="give the float model from before it was quantised; masks of -inf are tamed there",
            metadata={"node": node_label(node)},
        )


def _replace_quantiser(node: ir.Node, editor: Editor, opset: int, result: PassResult) -> None:
    x, whole, given = node.inputs[0], node.outputs[0], scale_of(node)
    kind, ends = kind_of(node), ends_of(whole)
    if x is None or given is None or kind not in RANGES or ends is None:
        result.skip(node, "its scale is computed, or something reads the whole numbers themselves")
        return
    scale, zero = given
    if any(not has_scale(end, scale, zero) for end in ends):
        result.skip(node, "what it makes is read with another scale")
        return
    limits, offset = RANGES[kind], np.zeros_like(scale) if zero is None else zero
    constant = read_constant(x)
    if constant is not None:
        axis = int(attribute(node, "axis", 1))
        made = editor.constant(fake_quantise(constant, scale, offset, kind, axis), f"{x.name}_float")
    elif scale.size == 1:
        made = _limited(node, x, scale, offset, limits, opset, editor)
    else:
        result.skip(node, "a computed value with a scale per channel")
        return
    carry(whole, made)
    for end in ends:
        editor.replace(end.outputs[0], end.inputs[0])  # type: ignore[arg-type]
        editor.drop(end)
    editor.drop(node)
    result.apply(node, "QuantizeLinear, DequantizeLinear", "constant" if constant is not None else "Clip")


def _limited(
    node: ir.Node, x: ir.Value, scale: Array, zero: Array, limits: tuple[int, int], opset: int, editor: Editor
) -> ir.Value:
    low, high = (np.asarray((b - float(zero.reshape(()))) * float(scale.reshape(())), scale.dtype) for b in limits)
    lowest, highest = range_of(x)
    half = 0.5 * float(scale.reshape(()))
    if lowest >= float(low) - half and highest <= float(high) + half:
        return x
    dtype, hint = x.dtype or ir.DataType.from_numpy(scale.dtype), f"{x.name}_limits"
    if opset < 11:
        return editor.node(
            node, "Clip", [x], shape_of(x), {"min": float(low), "max": float(high)}, hint=hint, dtype=dtype
        )
    bounds = [editor.constant(b, f"{x.name}_{n}") for n, b in (("low", low), ("high", high))]
    return editor.node(node, "Clip", [x, *bounds], shape_of(x), hint=hint, dtype=dtype)


def _replace_dequantiser(node: ir.Node, editor: Editor, result: PassResult) -> None:
    whole, given = node.inputs[0], scale_of(node)
    if whole is None or given is None:
        result.skip(node, "its scale is computed")
        return
    (scale, zero), axis = given, int(attribute(node, "axis", 1))
    constant = read_constant(whole)
    source = source_of(whole)
    table, readers = read_constant(source), ends_of(source) or []
    if table is not None and table.dtype.kind == "f" and constant is None:
        made, after = whole, "constant in front of the moves"  # another reader has brought it there
    elif constant is not None:
        real = dequantise(constant, scale, zero, axis, int(attribute(node, "block_size", 0)))
        made, after = editor.constant(real, f"{whole.name}_float"), "constant"
    elif table is not None and scale.size == 1 and readers and all(has_scale(n, scale, zero) for n in readers):
        carry(source, editor.constant(dequantise(table, scale, zero), f"{source.name}_float"))
        made, after = whole, "constant in front of the moves"
    elif scale.size == 1:
        dtype = ir.DataType.from_numpy(scale.dtype)
        made = editor.node(node, "Cast", [whole], shape_of(whole), {"to": int(dtype)}, dtype=dtype)
        for op, number in (("Sub", zero), ("Mul", scale)):
            if number is not None and np.any(number):
                operand = editor.constant(number.astype(scale.dtype).reshape(()), f"{whole.name}_{op.lower()}")
                made = editor.node(node, op, [made, operand], shape_of(whole))
        after = "Cast, Sub, Mul"
    else:
        result.skip(node, "a computed value with a scale per channel")
        return
    editor.replace(node.outputs[0], made)
    result.apply(node, "DequantizeLinear", after)
    editor.drop(node)


PASS = Pass(id="strip-quantisation", summary="quantised -> the float model inside", exactness=ROUNDING, apply=apply)
