"""CPU operators of a compiled model, in numpy, float32.

Quantize and Dequantize are bit-equal to the vendor's runtime (tests compare). Operators that sum (Conv, Softmax) may
differ in the last bit from the vendor's kernels, as those do from each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import TASK_FAILED, BoardError
from .read_model import Node

Array = NDArray[Any]
_LIMITS = {8: (-128, 127, np.int8), 16: (-32768, 32767, np.int16), 32: (-(2**31), 2**31 - 1, np.int32)}


def run_cpu_node(node: Node, inputs: list[Array]) -> list[Array]:
    """Executes one CPU node.

    Args:
        node: the node; its op_type is not `BPU`.
        inputs: its input arrays in order.

    Returns:
        Its outputs in order.

    Raises:
        BoardError: the operator is not known here.
    """
    operator = OPERATORS.get(node.op_type)
    if operator is None:
        raise BoardError(TASK_FAILED, f"CPU operator {node.op_type} ({node.name}) is not known to the stand-in")
    result = operator(node, inputs)
    return result if isinstance(result, list) else [result]


def _channel_shape(scale: Array, rank: int, axis: int) -> Array:
    if scale.size == 1:
        return scale.reshape(())
    shape = [1] * rank
    shape[axis] = scale.size
    return scale.reshape(shape)


def _axis(node: Node, default: int) -> int:
    return int(node.attributes.get("axis", default))


def quantize(node: Node, inputs: list[Array]) -> Array:
    """float32 -> int8/int16: clip(round-half-even(x / scale))."""
    low, high, kind = _LIMITS[int(node.attributes.get("bits", 8))]
    x = inputs[0].astype(np.float32)
    scale = _channel_shape(inputs[1].astype(np.float32), x.ndim, _axis(node, 1))
    return np.clip(np.rint(x / scale), low, high).astype(kind)


def dequantize(node: Node, inputs: list[Array]) -> Array:
    """Integer -> float32: value * scale, the scale per tensor or per channel on `axis`."""
    x = inputs[0].astype(np.float32)
    return (x * _channel_shape(inputs[1].astype(np.float32), x.ndim, _axis(node, 1))).astype(np.float32)


def softmax(node: Node, inputs: list[Array]) -> Array:
    """Softmax of opset 11: all dimensions from `axis` on are one, shifted by the maximum."""
    rows = _rows(node, inputs[0])
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True), np.float32).reshape(inputs[0].shape)


def log_softmax(node: Node, inputs: list[Array]) -> Array:
    """Logarithm of `softmax`."""
    rows = _rows(node, inputs[0])
    shifted = rows - rows.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)), np.float32).reshape(inputs[0].shape)


def _rows(node: Node, x: Array) -> Array:
    axis = _axis(node, 1) % x.ndim
    return x.astype(np.float32).reshape(int(np.prod(x.shape[:axis], dtype=int)), -1)


def reshape(node: Node, inputs: list[Array]) -> Array:
    """Reshape by input or attribute; 0 keeps a dimension, -1 is worked out."""
    wanted = inputs[1] if len(inputs) > 1 else node.attributes.get("shape", node.attributes.get("dim", []))
    x = inputs[0]
    shape = [x.shape[i] if int(d) == 0 else int(d) for i, d in enumerate(np.asarray(wanted).reshape(-1))]
    return x.reshape(shape)


def transpose(node: Node, inputs: list[Array]) -> Array:
    """Axis permutation by `perm` (or `order`)."""
    order = node.attributes.get("perm", node.attributes.get("order"))
    return np.ascontiguousarray(np.transpose(inputs[0], order))


def conv(node: Node, inputs: list[Array]) -> Array:
    """Grouped, strided, padded convolution of any rank, direct form, float32.

    x [N, C, *spatial], weight [O, C/g, *kernel], bias [O] -> [N, O, *spatial].
    """
    x, weight = inputs[0].astype(np.float32), inputs[1].astype(np.float32)
    rank = x.ndim - 2
    attributes = node.attributes
    stride = _spread(attributes.get("stride", attributes.get("strides")), rank, 1)
    dilation = _spread(attributes.get("dilation", attributes.get("dilations")), rank, 1)
    group = int(attributes.get("num_group", attributes.get("group", 1)))
    pads = list(attributes.get("pad", attributes.get("pads", [0])))
    pads = pads if len(pads) == 2 * rank else (pads * 2 if len(pads) == rank else pads[:1] * (2 * rank))
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + rank]) for i in range(rank)])
    kernel = weight.shape[2:]
    out = [(x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(rank)]
    y = np.zeros((x.shape[0], weight.shape[0], *out), np.float32)
    per_in, per_out = x.shape[1] // group, weight.shape[0] // group
    for tap in np.ndindex(*kernel):
        window = [
            slice(tap[i] * dilation[i], tap[i] * dilation[i] + (out[i] - 1) * stride[i] + 1, stride[i])
            for i in range(rank)
        ]
        part = x[tuple([slice(None)] * 2 + window)].reshape(x.shape[0], group, per_in, -1)
        taps = weight[tuple([slice(None)] * 2 + list(tap))].reshape(group, per_out, per_in)
        y += np.einsum("goc,ngcs->ngos", taps, part).reshape(y.shape)
    if len(inputs) > 2 and inputs[2].size:
        y += inputs[2].astype(np.float32).reshape(1, -1, *([1] * rank))
    return y


def _spread(value: Any, rank: int, default: int) -> list[int]:
    if not value:
        return [default] * rank
    return [int(v) for v in value] if len(value) == rank else [int(value[0])] * rank


def _unary(function: Callable[[Array], Array]) -> Callable[[Node, list[Array]], Array]:
    return lambda node, inputs: np.asarray(function(inputs[0])).astype(inputs[0].dtype)


def _binary(function: Callable[[Array, Array], Array]) -> Callable[[Node, list[Array]], Array]:
    return lambda node, inputs: np.asarray(function(inputs[0], inputs[1]))


def _many(function: Callable[[Array, Array], Array]) -> Callable[[Node, list[Array]], Array]:
    def run(node: Node, inputs: list[Array]) -> Array:
        result = inputs[0]
        for other in inputs[1:]:
            result = function(result, other)
        return result

    return run


def _reduce(function: Callable[..., Array]) -> Callable[[Node, list[Array]], Array]:
    def run(node: Node, inputs: list[Array]) -> Array:
        axes = node.attributes.get("axes")
        if axes is None and len(inputs) > 1:
            axes = [int(v) for v in inputs[1].reshape(-1)]
        keep = bool(node.attributes.get("keepdims", 1))
        x = inputs[0]
        return np.asarray(function(x, axis=tuple(axes) if axes else None, keepdims=keep)).astype(x.dtype)

    return run


def elu(node: Node, inputs: list[Array]) -> Array:
    """Input where positive, alpha * (exp(x) - 1) elsewhere."""
    x = inputs[0].astype(np.float32)
    alpha = np.float32(node.attributes.get("alpha", 1.0))
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))).astype(np.float32)


def cast(node: Node, inputs: list[Array]) -> Array:
    """Type change; `to` is an ONNX element type number."""
    kinds = {1: np.float32, 2: np.uint8, 3: np.int8, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}
    to = node.attributes.get("to", 1)
    if int(to) not in kinds:
        raise BoardError(TASK_FAILED, f"Cast to type {to} is not known to the stand-in")
    return inputs[0].astype(kinds[int(to)])


def concat(node: Node, inputs: list[Array]) -> Array:
    """Concatenation along `axis`."""
    return np.concatenate(inputs, axis=_axis(node, 1))


def squeeze(node: Node, inputs: list[Array]) -> Array:
    """Removes dimensions of extent 1."""
    axes = node.attributes.get("axes")
    return inputs[0].squeeze(tuple(axes) if axes else None)


def unsqueeze(node: Node, inputs: list[Array]) -> Array:
    """Adds dimensions of extent 1 at `axes`."""
    result = inputs[0]
    for axis in sorted(node.attributes.get("axes", [])):
        result = np.expand_dims(result, axis)
    return result


def where(node: Node, inputs: list[Array]) -> Array:
    """Element-wise choice."""
    return np.where(inputs[0].astype(bool), inputs[1], inputs[2])


def flatten(node: Node, inputs: list[Array]) -> Array:
    """Two dimensions, split before `axis`."""
    x, axis = inputs[0], _axis(node, 1)
    return x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1)


def argmax(node: Node, inputs: list[Array]) -> Array:
    """Index of the maximum."""
    axis, keep = _axis(node, 0), bool(node.attributes.get("keepdims", 1))
    index = np.argmax(inputs[0], axis=axis)
    return np.expand_dims(index, axis) if keep else index


OPERATORS: dict[str, Callable[[Node, list[Array]], Any]] = {
    "Quantize": quantize,
    "Dequantize": dequantize,
    "Softmax": softmax,
    "LogSoftmax": log_softmax,
    "Reshape": reshape,
    "Transpose": transpose,
    "Conv": conv,
    "Elu": elu,
    "Cast": cast,
    "Concat": concat,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Flatten": flatten,
    "Where": where,
    "ArgMax": argmax,
    "Identity": lambda node, inputs: inputs[0],
    "Relu": _unary(lambda x: np.maximum(x, 0)),
    "Neg": _unary(np.negative),
    "Abs": _unary(np.abs),
    "Exp": _unary(np.exp),
    "Log": _unary(np.log),
    "Sqrt": _unary(np.sqrt),
    "Sigmoid": _unary(lambda x: 1 / (1 + np.exp(-x))),
    "Tanh": _unary(np.tanh),
    "Not": _unary(np.logical_not),
    "Add": _many(np.add),
    "Sub": _binary(np.subtract),
    "Mul": _many(np.multiply),
    "Div": _binary(np.divide),
    "Pow": _binary(np.power),
    "MatMul": _binary(np.matmul),
    "Min": _many(np.minimum),
    "Max": _many(np.maximum),
    "Equal": _binary(np.equal),
    "Less": _binary(np.less),
    "Greater": _binary(np.greater),
    "And": _binary(np.logical_and),
    "Or": _binary(np.logical_or),
    "ReduceSum": _reduce(np.sum),
    "ReduceMean": _reduce(np.mean),
    "ReduceMax": _reduce(np.max),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
}
