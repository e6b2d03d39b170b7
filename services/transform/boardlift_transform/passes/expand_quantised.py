"""Take operators on whole numbers apart into dequantisers, the float operator and a quantiser.

Before -> After: QLinearConv, QLinearMatMul, and onnxruntime's QGemm, QLinearAdd, -Mul, -Sigmoid, -LeakyRelu, -Softmax,
-Concat, -AveragePool, -GlobalAveragePool, -ReduceMean -> DequantizeLinear per operand, the operator, QuantizeLinear.
Why: the toolchain quantises float models only; `strip-quantisation` takes the rest.
Exactness: float rounding before the quantiser, which may move a value by one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, input_at, remove_unused, shape_of, used_opset
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult
from boardlift_transform.quantised_region import DEQUANTISE, QUANTISE
from boardlift_transform.quantised_values import along_axis, read_constant

_BINARY, _UNARY = ((0, 3), 6), ((0,), 3)
_LAYOUTS: dict[str, tuple[str, tuple[tuple[int, ...], int]]] = {
    "QLinearConv": ("Conv", _BINARY),
    "QLinearMatMul": ("MatMul", _BINARY),
    "QGemm": ("Gemm", ((0, 3), 7)),
    "QLinearAdd": ("Add", _BINARY),
    "QLinearMul": ("Mul", _BINARY),
    "QLinearSigmoid": ("Sigmoid", _UNARY),
    "QLinearLeakyRelu": ("LeakyRelu", _UNARY),
    "QLinearSoftmax": ("Softmax", _UNARY),
    "QLinearAveragePool": ("AveragePool", _UNARY),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", _UNARY),
    "QLinearReduceMean": ("ReduceMean", _UNARY),
    "QLinearConcat": ("Concat", ((), 0)),
}
"""Float operator, where the operands lie (each with scale and zero point behind it), where the result's scale lies."""
_BIASES = {"QLinearConv": 8, "QGemm": 6}
_WEIGHT_AXES = {"QLinearConv": 0, "QLinearMatMul": -1}
_DROPPED = frozenset({"channels_last", "opset"})
OPERATORS = frozenset(_LAYOUTS)


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite each operator whose scales are constants."""
    result, opset = PassResult(), used_opset(model)
    nodes = [n for n in model.graph if n.op_type in _LAYOUTS and n.domain in ("", "ai.onnx", "com.microsoft")]
    if not nodes:
        return result
    editor = Editor(model.graph, PASS.id)
    for node in nodes:
        _expand(node, editor, opset, result)
    if result.applied:
        remove_unused(model.graph)
    return result


def _expand(node: ir.Node, editor: Editor, opset: int, result: PassResult) -> None:
    core, (places, end) = _LAYOUTS[node.op_type]
    if node.op_type == "QLinearConcat":
        places = tuple(range(2, len(node.inputs), 3))
    why = _refusal(node, opset)
    if why:
        result.skip(node, why)
        return
    operands = [_dequantiser(node, place, editor) for place in places]
    bias = input_at(node, _BIASES.get(node.op_type, len(node.inputs)))
    if bias is not None:
        real = _bias(node, bias, places)
        if real is None:
            result.skip(node, "its bias or a scale is computed")
            return
        operands.append(editor.constant(real, f"{bias.name}_float"))
    attributes = {n: attribute(node, n) for n in node.attributes if n not in _DROPPED}
    old = node.outputs[0]
    value = editor.node(
        node, core, operands, shape_of(old), attributes, hint=node.name or core, dtype=ir.DataType.FLOAT
    )
    scale = input_at(node, end)
    if scale is not None:  # QGemm may end in floats
        inputs = [value, scale, input_at(node, end + 1)]
        kind = inputs[2].dtype if inputs[2] is not None else ir.DataType.UINT8
        value = editor.node(node, QUANTISE, inputs, shape_of(old), hint=f"{node.name or core}_quantise", dtype=kind)
    editor.replace(old, value)
    editor.drop(node)
    result.apply(node, node.op_type, f"{DEQUANTISE}, {core}, {QUANTISE}")


def _refusal(node: ir.Node, opset: int) -> str:
    if attribute(node, "channels_last", 0):
        return "channels last"
    if node.op_type == "QLinearSoftmax":
        rank = len(node.inputs[0].shape) if node.inputs[0] is not None and node.inputs[0].shape is not None else 0
        axis = int(attribute(node, "axis", -1))
        if (int(attribute(node, "opset", opset)) < 13) != (opset < 13) and axis not in (-1, rank - 1):
            return "Softmax by the rules of another opset"
    return ""


def _dequantiser(node: ir.Node, place: int, editor: Editor) -> ir.Value:
    value, scale, zero = (input_at(node, place + i) for i in range(3))
    attributes = {}
    numbers = read_constant(scale)
    if numbers is not None and numbers.size > 1:
        attributes["axis"] = _WEIGHT_AXES.get(node.op_type, 1 - int(attribute(node, "transB", 0)))
    shape = shape_of(value)
    return editor.node(node, DEQUANTISE, [value, scale, zero], shape, attributes,
                       hint=f"{value.name if value else ''}_real", dtype=ir.DataType.FLOAT)  # fmt: skip


def _bias(node: ir.Node, bias: ir.Value, places: tuple[int, ...]) -> Array | None:
    """The int32 bias times the product of both scales, as the operators define it."""
    numbers = [read_constant(v) for v in (bias, *(input_at(node, p + 1) for p in places))]
    if any(n is None for n in numbers):
        return None
    whole, left, right = (np.asarray(n) for n in numbers)
    step = along_axis(np.asarray(left * right, np.float32), whole.ndim, -1)
    factor = float(attribute(node, "alpha", 1.0)) if node.op_type == "QGemm" else 1.0
    return np.asarray(whole.astype(np.float32) * step * np.float32(factor))


PASS = Pass(id="expand-quantised", summary="operators on whole numbers -> (de)quantisers and float operators",
            exactness=ROUNDING, apply=apply)  # fmt: skip
