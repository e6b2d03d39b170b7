"""Gemm and MatMul with a constant matrix as 1x1 convolutions on 4-D twins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, attribute, constant_of, input_at, is_constant, shape_of
from boardlift_transform.lift.twins import Twins


@dataclass(frozen=True)
class Linear:
    """A matrix `[O, C]` and a bias `[O]`, with the keys under which layers share them."""

    matrix: Array
    """The weight."""
    bias: Array | None
    """The bias."""
    weight_key: tuple[object, ...]
    """Equal keys are equal weights."""
    bias_key: tuple[object, ...] = ()
    """Equal keys are equal biases."""


def lift_gemm(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """`[N,C] @ W + b` -> Conv 1x1 of `[N,C,1,1]`, weight `[O,C,1,1]`."""
    x = node.inputs[0]
    if x is None or is_constant(x) or attribute(node, "transA", 0) or not is_constant(input_at(node, 1)):
        return None
    bias_value = input_at(node, 2)
    if bias_value is not None and not is_constant(bias_value):
        return None
    weight = constant_of(node.inputs[1])
    if weight is None or weight.dtype != np.float32:
        return None
    rows, alpha, beta = (float(attribute(node, n, d)) for n, d in (("transB", 0), ("alpha", 1.0), ("beta", 1.0)))
    matrix = weight if rows else weight.T
    bias = gemm_bias(node, matrix.shape[0])
    if bias_value is not None and bias is None:
        return None
    if alpha != 1.0:
        matrix = matrix * np.float32(alpha)
    made = Linear(matrix, bias, (node.inputs[1], rows, alpha), (bias_value, beta, matrix.shape[0]))
    return [contract(node, twins, x, made)]


def gemm_bias(node: ir.Node, channels: int) -> Array | None:
    """The Gemm's constant bias as `[O]`, beta applied; None when absent or not one value per output channel."""
    bias = constant_of(input_at(node, 2))
    if bias is None or bias.size not in (1, channels) or (bias.ndim == 2 and bias.shape[0] != 1):
        return None
    beta = np.float32(attribute(node, "beta", 1.0))
    scaled = bias.reshape(-1) if beta == 1 else bias.reshape(-1) * beta
    return np.ascontiguousarray(np.broadcast_to(scaled, (channels,)))


def pointwise(node: ir.Node, twins: Twins, source: ir.Value, linear: Linear, shape: list[int]) -> ir.Value:
    """Insert Conv 1x1."""
    editor, matrix, bias = twins.editor, linear.matrix, linear.bias
    base = node.name or "Conv"
    key = ("pointwise", *linear.weight_key)
    weight = twins.shared(key, lambda: np.ascontiguousarray(matrix).reshape(*matrix.shape, 1, 1), f"{base}_weight")
    inputs = [source, weight]
    if bias is not None:
        inputs.append(twins.shared(("bias", *linear.bias_key), lambda: bias, f"{base}_bias"))
    attributes = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1], "group": 1}
    return editor.node(node, "Conv", inputs, shape, attributes, hint=node.name or "")


def lift_matmul(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """`x @ W` or `W @ x` with constant W: the contracted axis goes to the channel axis, Conv 1x1, and back."""
    if not any(is_constant(v) for v in node.inputs):
        return _lift_product(node, twins)
    on_right = is_constant(input_at(node, 1))
    x, constant = (node.inputs[0], input_at(node, 1)) if on_right else (input_at(node, 1), node.inputs[0])
    matrix, out = plain_matrix(constant), node.outputs[0]
    shape = shape_of(x)
    if x is None or matrix is None or is_constant(x) or not shape or matrix.dtype != np.float32:
        return None
    if twins.axes(x) != twins.axes(out) or (not on_right and len(shape) < 2):
        return None
    if on_right:
        return [contract(node, twins, x, Linear(matrix.T, None, (constant, "right")))]
    return [contract(node, twins, x, Linear(matrix, None, (constant, "left")), place=-2)]


def _lift_product(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Attention's products of two computed values stay MatMul, on the last two of four axes."""
    left, right, out = node.inputs[0], input_at(node, 1), node.outputs[0]
    if left is None or right is None:
        return None
    axes = [twins.axes(v) for v in (left, right, out)]
    if axes[0] != axes[1] or axes[0] != axes[2] or axes[0][-2:] != (2, 3):
        return None
    inputs = [twins.twin(left, node), twins.twin(right, node)]
    return [twins.editor.node(node, "MatMul", inputs, twins.shape4(out), hint=node.name or "")]


def contract(node: ir.Node, twins: Twins, x: ir.Value, linear: Linear, place: int = -1) -> ir.Value:
    """Conv 1x1 over one axis of `x`: moved to the channel axis first and back after, where it is not there."""
    axis = twins.axes(x)[place]
    source = twins.twin(x, node)
    perm = channel_first(axis, shape_of(source) or ())
    if axis != 1:
        source = twins.turned(source, perm, node, f"{node.name}_in")
    have = list(shape_of(source) or ())
    have[1] = linear.matrix.shape[0]
    made = pointwise(node, twins, source, linear, have)
    if axis != 1:
        made = twins.editor.transpose(node, made, inverse(perm), hint=f"{node.name}_out")
    made.shape = ir.Shape(twins.shape4(node.outputs[0]))
    return made


def plain_matrix(value: ir.Value | None) -> Array | None:
    """A constant `[K, M]`, also when it is stored with leading 1 axes."""
    array = constant_of(value)
    if array is None or array.ndim < 2 or any(d != 1 for d in array.shape[:-2]):
        return None
    return array.reshape(array.shape[-2:])


def channel_first(axis: int, shape: tuple[int, ...]) -> list[int]:
    """The permutation of four axes that brings `axis` to place 1 and keeps the others in order, the last one long.

    Rows of one long axis in `[N,C,T,1]` are stored padded to 8: a LayerNormalization of 300 tokens between two
    convolutions takes 5441 us there and 268 us as `[N,C,1,T]` (O1, int8, estimated).
    """
    first, last = (a for a in (1, 2, 3) if a != axis)
    return [0, axis, last, first] if shape[last] == 1 else [0, axis, first, last]


def inverse(perm: list[int]) -> list[int]:
    """The inverse permutation."""
    return [perm.index(i) for i in range(len(perm))]
