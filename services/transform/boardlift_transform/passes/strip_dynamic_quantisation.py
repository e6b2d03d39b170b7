"""Take dynamic quantisation out: the float product that it approximates is left.

Before -> After: `Mul(Cast(MatMulInteger(DynamicQuantizeLinear(x), w)), x_scale * w_scale)` -> `MatMul(x, float w)`,
also with ConvInteger; onnxruntime's DynamicQuantizeMatMul, MatMulIntegerToFloat -> MatMul; DynamicQuantizeLSTM -> LSTM.
Why: the toolchain quantises float models only and takes none of these.
Exactness: float rounding for the weights; x itself is no longer rounded to 255 steps of its own range. The transform
proves all other passes against the model that this one leaves, and measures how far that one is from the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, input_at, only_use, remove_unused, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult
from boardlift_transform.quantised_values import dequantise, read_constant

_PRODUCTS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
_WEIGHT_AXES = {"MatMulInteger": -1, "ConvInteger": 0}
OPERATORS = frozenset({"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "DynamicQuantizeLSTM"})


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite each product whose weights and scales are constants."""
    result = PassResult()
    kinds = OPERATORS | set(_PRODUCTS)
    nodes = [n for n in model.graph if n.op_type in kinds and n.domain in ("", "ai.onnx", "com.microsoft")]
    if not nodes:
        return result
    editor = Editor(model.graph, PASS.id)
    for node in nodes:
        made = _RULES[node.op_type](node, editor)
        if made is None:
            result.skip(node, "its weights or scales are computed, or its whole numbers are read elsewhere")
            continue
        for old, new in made:
            editor.replace(old, new)
        result.apply(node, node.op_type, made[0][1].producer().op_type)  # type: ignore[union-attr]
    if result.applied:
        remove_unused(model.graph)
    return result


_Made = list[tuple[ir.Value, ir.Value]]


def _dynamic_source(whole: ir.Value | None) -> ir.Node | None:
    node = whole.producer() if whole is not None else None
    return node if node is not None and node.op_type == "DynamicQuantizeLinear" and whole is node.outputs[0] else None


def _product(node: ir.Node, editor: Editor) -> _Made | None:
    """MatMulInteger or ConvInteger with Cast and Mul behind it."""
    source, cast = _dynamic_source(input_at(node, 0)), only_use(node.outputs[0])
    factor = only_use(cast.outputs[0]) if cast is not None and cast.op_type == "Cast" else None
    if source is None or factor is None or factor.op_type != "Mul" or cast is None:
        return None
    scales = next((v for v in factor.inputs if v is not None and v is not cast.outputs[0]), None)
    product = scales.producer() if scales is not None else None
    if product is None or product.op_type != "Mul" or source.outputs[1] not in product.inputs:
        return None
    other = next((v for v in product.inputs if v is not source.outputs[1]), None)
    axis = _WEIGHT_AXES[node.op_type]
    weight = _weight(node.inputs[1], other, input_at(node, 3), axis, input_at(node, 3) is not None)
    if weight is None:
        return None
    attributes = {n: attribute(node, n) for n in node.attributes}
    inputs = [source.inputs[0], editor.constant(weight, f"{node.inputs[1].name}_float")]  # type: ignore[union-attr]
    shape = shape_of(factor.outputs[0])
    return [(factor.outputs[0], editor.node(node, _PRODUCTS[node.op_type], inputs, shape, attributes))]


def _weight(
    whole: ir.Value | None, scale: ir.Value | None, zero: ir.Value | None, axis: int, has_zero: bool
) -> Array | None:
    numbers, scales, zeros = read_constant(whole), read_constant(scale), read_constant(zero)
    if numbers is None or scales is None or (has_zero and zeros is None):
        return None
    scales = scales.reshape(-1)  # per channel it is written [C, 1, 1] for a Conv
    zeros = None if zeros is None else np.broadcast_to(zeros.reshape(-1), scales.shape)
    try:
        return dequantise(numbers, scales, zeros, axis)
    except ValueError:
        return None


def _matmul(node: ir.Node, editor: Editor) -> _Made | None:
    """Onnxruntime's fused forms: A, B, [A's scale], B's scale, [A's zero], B's zero, bias."""
    fused = node.op_type == "DynamicQuantizeMatMul"
    source = None if fused else _dynamic_source(input_at(node, 0))
    if not fused and (source is None or input_at(node, 2) is not source.outputs[1]):
        return None
    scale, zero, bias = (input_at(node, i) for i in ((2, 3, 4) if fused else (3, 5, 6)))
    weight = _weight(node.inputs[1], scale, zero, -1, zero is not None)
    if weight is None:
        return None
    x = node.inputs[0] if source is None else source.inputs[0]
    shape = shape_of(node.outputs[0])
    value = editor.node(node, "MatMul", [x, editor.constant(weight, f"{node.inputs[1].name}_float")], shape)  # type: ignore[union-attr]
    if bias is not None:
        value = editor.node(node, "Add", [value, bias], shape)
    return [(node.outputs[0], value)]


def _lstm(node: ir.Node, editor: Editor) -> _Made | None:
    """Onnxruntime keeps weights `[directions, input, 4 hidden]`, which ONNX has transposed."""
    weights = []
    for place, scale in ((1, 8), (2, 10)):
        numbers, scales = read_constant(node.inputs[place]), read_constant(input_at(node, scale))
        zeros = read_constant(input_at(node, scale + 1))
        if numbers is None or scales is None or zeros is None:
            return None
        wide = [p.reshape(p.shape[0], 1, -1) for p in (scales, zeros.astype(np.float32))]
        real = np.ascontiguousarray(((numbers.astype(np.float32) - wide[1]) * wide[0]).transpose(0, 2, 1))
        weights.append(editor.constant(real, f"{node.inputs[place].name}_float"))  # type: ignore[union-attr]
    inputs = [node.inputs[0], *weights, *node.inputs[3:8]]
    attributes = {n: attribute(node, n) for n in node.attributes}
    made = editor.node_outputs(node, "LSTM", inputs, [shape_of(o) for o in node.outputs], attributes)
    return list(zip(node.outputs, made, strict=True))


_RULES = {"MatMulInteger": _product, "ConvInteger": _product, "DynamicQuantizeMatMul": _matmul,
          "MatMulIntegerToFloat": _matmul, "DynamicQuantizeLSTM": _lstm}  # fmt: skip
PASS = Pass(id="strip-dynamic-quantisation", summary="dynamic quantisation -> float MatMul, Conv, LSTM",
            exactness=ROUNDING, apply=apply)  # fmt: skip
