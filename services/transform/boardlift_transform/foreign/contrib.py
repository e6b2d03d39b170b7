"""What onnxruntime's own optimiser writes into a model that it saves (domain com.microsoft), in ONNX's operators.

Source of the formulas: onnxruntime's description of its contrib operators. A rule returns the new values of the node's
outputs, or the reason why this form is not taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, input_at, rank_of, shape_of
from boardlift_transform.foreign import attention
from boardlift_transform.foreign.normalise import normalise_last

Made = list[tuple[ir.Value, ir.Value]]
Rule = Callable[[ir.Node, Editor, int], "Made | str"]
_PLAIN = frozenset({"Relu", "Sigmoid", "Tanh", "Softplus", "Softsign"})
_PARAMETERS = {"Elu": ("alpha",), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
_CUBE, _ROOT = 0.044715, math.sqrt(2 / math.pi)


def _number(editor: Editor, value: float, like: ir.Value) -> ir.Value:
    dtype = like.dtype.numpy() if like.dtype is not None else np.dtype(np.float32)
    return editor.constant(np.asarray(value, dtype), f"{like.name}_number")


def _activate(
    node: ir.Node, editor: Editor, x: ir.Value, kind: str, numbers: list[float], opset: int
) -> ir.Value | None:
    if not kind or kind in _PLAIN:
        return editor.node(node, kind, [x], shape_of(x)) if kind else x
    if kind == "Clip" and len(numbers) == 2:
        if opset < 11:
            return editor.node(node, "Clip", [x], shape_of(x), dict(zip(("min", "max"), numbers, strict=True)))
        return editor.node(node, "Clip", [x, *(_number(editor, n, x) for n in numbers)], shape_of(x))
    if kind in _PARAMETERS and len(numbers) >= len(_PARAMETERS[kind]):
        return editor.node(node, kind, [x], shape_of(x), dict(zip(_PARAMETERS[kind], numbers, strict=False)))
    return None


def _fused(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    """FusedConv (X, W, B, Z added before the activation) and FusedGemm."""
    core = "Conv" if node.op_type == "FusedConv" else "Gemm"
    kind = attribute(node, "activation", "")
    numbers = [float(n) for n in attribute(node, "activation_params", [])]
    numbers = numbers or [
        float(attribute(node, f"activation_{n}")) for n in ("alpha", "beta") if f"activation_{n}" in node.attributes
    ]
    attributes = {n: attribute(node, n) for n in node.attributes if not n.startswith("activation")}
    old = node.outputs[0]
    value = editor.node(node, core, node.inputs[:3], shape_of(old), attributes)
    added = input_at(node, 3)
    if added is not None:
        value = editor.node(node, "Add", [value, added], shape_of(old))
    made = _activate(node, editor, value, kind, numbers, opset)
    return f"activation {kind}" if made is None else [(old, made)]


def _matmul(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    """FusedMatMul: alpha * A B with A or B transposed in the last two axes."""
    if attribute(node, "transBatchA", 0) or attribute(node, "transBatchB", 0):
        return "transposed batch axes"
    operands = [v for v in node.inputs if v is not None]
    flags = [bool(attribute(node, n, 0)) for n in ("transA", "transB")]
    ranks = [rank_of(v) for v in operands]
    if any(flag and rank is None for flag, rank in zip(flags, ranks, strict=True)):
        if opset < 12:
            return "operands of unknown rank"
        terms = [("...ki", "...ik")[not flags[0]], ("...jk", "...kj")[not flags[1]]]
        value = editor.node(
            node, "Einsum", operands, shape_of(node.outputs[0]), {"equation": f"{terms[0]},{terms[1]}->...ij"}
        )
    else:
        for index, (flag, rank) in enumerate(zip(flags, ranks, strict=True)):
            if flag and rank is not None and rank > 1:
                operands[index] = editor.transpose(node, operands[index], [*range(rank - 2), rank - 1, rank - 2])
        value = editor.node(node, "MatMul", operands, shape_of(node.outputs[0]))
    alpha = float(attribute(node, "alpha", 1.0))
    if alpha != 1.0:
        value = editor.node(node, "Mul", [value, _number(editor, alpha, value)], shape_of(value))
    return [(node.outputs[0], value)]


def _gelu(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    """Gelu, BiasGelu: `x / 2 * (1 + erf(x / sqrt 2))`; FastGelu: the tanh form; QuickGelu: `x * sigmoid(alpha x)`."""
    x, bias = node.inputs[0], input_at(node, 1)
    if x is None:
        return "no input"
    shape, like = shape_of(x), x

    def op(kind: str, *inputs: ir.Value) -> ir.Value:
        return editor.node(node, kind, inputs, shape)

    def by(value: ir.Value, number: float, kind: str = "Mul") -> ir.Value:
        return op(kind, value, _number(editor, number, like))

    if bias is not None:
        x = op("Add", x, bias)
    if node.op_type == "QuickGelu":
        return [(node.outputs[0], op("Mul", x, op("Sigmoid", by(x, float(attribute(node, "alpha", 1.702))))))]
    if node.op_type == "FastGelu":
        cube = by(op("Mul", op("Mul", x, x), x), _CUBE)
        bent = op("Tanh", by(op("Add", x, cube), _ROOT))
    else:
        bent = op("Erf", by(x, math.sqrt(0.5)))
    return [(node.outputs[0], by(op("Mul", x, by(bent, 1.0, "Add")), 0.5))]


def _norm(node: ir.Node, editor: Editor, opset: int) -> Made | str:
    """(Skip)(Simplified)LayerNormalization over the last axis; Skip adds its inputs and the bias first."""
    x = node.inputs[0]
    if x is None or int(attribute(node, "axis", -1)) not in (-1, (rank_of(x) or 0) - 1):
        return "more axes than the last"
    skips, centred = node.op_type.startswith("Skip"), "Simplified" not in node.op_type
    gamma, beta, bias = input_at(node, 1 + skips), input_at(node, 2 + skips), None
    if skips:
        bias = input_at(node, 4 if centred else 3)
        beta = beta if centred else None
        for term in (input_at(node, 1), bias):
            x = x if term is None else editor.node(node, "Add", [x, term], shape_of(x))
    epsilon = float(attribute(node, "epsilon", 1e-5 if not skips else 1e-12))
    made = [(node.outputs[0], normalise_last(node, editor, x, gamma, beta, epsilon, opset, centred=centred))]
    for index, output in enumerate(node.outputs):
        if index == 3 and skips and output.name:
            made.append((output, x))
        elif index and (output.uses() or output.is_graph_output()):
            return "its mean or variance is read"
    return made


RULES: dict[str, Rule] = {
    "FusedConv": _fused,
    "FusedGemm": _fused,
    "FusedMatMul": _matmul,
    **dict.fromkeys(("Gelu", "BiasGelu", "FastGelu", "QuickGelu"), _gelu),
    **dict.fromkeys(
        ("SkipLayerNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"), _norm
    ),
    "LayerNormalization": _norm,
    "Attention": attention.attend,
    "MultiHeadAttention": attention.attend,
    "EmbedLayerNormalization": attention.embed,
}
