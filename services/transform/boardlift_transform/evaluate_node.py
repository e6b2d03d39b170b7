"""Evaluating one node on constants: numpy for the operators of shape arithmetic, the onnx reference for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnx_ir as ir
from onnx import helper

from boardlift_transform.edit_graph import Array, attribute

NON_DETERMINISTIC = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
)
Inputs = Sequence[Any]
MAX_OUTPUT_ELEMENTS = 1 << 24


def evaluate_node(node: ir.Node, inputs: Inputs, opset: int) -> list[Array] | None:
    """Outputs of the node for constant inputs (None entries for absent ones), or None when it cannot be evaluated."""
    if node.domain not in ("", "ai.onnx") or node.op_type in NON_DETERMINISTIC:
        return None
    rule = _RULES.get(node.op_type)
    try:
        with np.errstate(all="ignore"):
            if rule is not None:
                result = rule(node, inputs)
                if result is not None:
                    return [np.asarray(result)]
            return _reference(node, inputs, opset)
    except (ValueError, IndexError, TypeError, KeyError, RuntimeError, NotImplementedError, OverflowError):
        return None


def _reference(node: ir.Node, inputs: Inputs, opset: int) -> list[Array] | None:
    proto = ir.to_proto(node)
    feeds = {}
    arguments = []
    for name, array in zip(proto.input, inputs, strict=False):
        if name:
            feeds[name] = array
            arguments.append(
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            )
    unique = {info.name: info for info in arguments}
    outputs = [helper.make_empty_tensor_value_info(name) for name in proto.output if name]
    graph = helper.make_graph([proto], "one_node", list(unique.values()), outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    results = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    if not all(isinstance(r, np.ndarray | np.generic) for r in results):
        return None
    by_name = dict(zip([name for name in proto.output if name], results, strict=False))
    return [np.asarray(by_name[name]) for name in proto.output] if all(proto.output) else None


def _axes(node: ir.Node, inputs: Inputs) -> list[int] | None:
    axes = attribute(node, "axes")
    if axes is None and len(inputs) > 1 and inputs[1] is not None:
        axes = np.asarray(inputs[1]).reshape(-1).tolist()
    return axes if axes is None else [int(a) for a in axes]


def _unsqueeze(node: ir.Node, inputs: Inputs) -> Array | None:
    axes = _axes(node, inputs)
    if axes is None:
        return None
    data = np.asarray(inputs[0])
    rank = data.ndim + len(axes)
    for axis in sorted(a % rank for a in axes):
        data = np.expand_dims(data, axis)
    return data


def _squeeze(node: ir.Node, inputs: Inputs) -> Array:
    axes = _axes(node, inputs)
    return np.asarray(np.squeeze(inputs[0], axis=None if axes is None else tuple(axes)))


def _gather(node: ir.Node, inputs: Inputs) -> Array:
    return np.asarray(np.take(inputs[0], np.asarray(inputs[1], np.int64), axis=int(attribute(node, "axis", 0))))


def _gather_elements(node: ir.Node, inputs: Inputs) -> Array:
    """Indices may cover less of the other axes than the data, which the reference does not know."""
    data, indices, axis = np.asarray(inputs[0]), np.asarray(inputs[1]), int(attribute(node, "axis", 0))
    covered = tuple(slice(None) if i == axis % data.ndim else slice(d) for i, d in enumerate(indices.shape))
    return np.take_along_axis(data[covered], indices, axis)


def _concat(node: ir.Node, inputs: Inputs) -> Array:
    return np.concatenate([np.asarray(i) for i in inputs], axis=int(attribute(node, "axis", 0)))


def _slice(node: ir.Node, inputs: Inputs) -> Array:
    data = np.asarray(inputs[0])
    if len(inputs) == 1:
        starts, ends = attribute(node, "starts"), attribute(node, "ends")
        axes, steps = attribute(node, "axes"), None
    else:
        starts, ends = inputs[1].tolist(), inputs[2].tolist()
        axes = inputs[3].tolist() if len(inputs) > 3 and inputs[3] is not None else None
        steps = inputs[4].tolist() if len(inputs) > 4 and inputs[4] is not None else None
    axes = axes if axes is not None else list(range(len(starts)))
    steps = steps if steps is not None else [1] * len(starts)
    window = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=False):
        stop: int | None = int(end)
        if step < 0 and end < -data.shape[axis]:
            stop = None
        window[axis] = slice(int(start), stop, int(step))
    return np.asarray(data[tuple(window)])


def _reshape(node: ir.Node, inputs: Inputs) -> Array:
    data, dims = np.asarray(inputs[0]), [int(d) for d in np.asarray(inputs[1]).reshape(-1)]
    if not attribute(node, "allowzero", 0):
        dims = [data.shape[i] if d == 0 else d for i, d in enumerate(dims)]
    return data.reshape(dims)


def _cast(node: ir.Node, inputs: Inputs) -> Array | None:
    target = ir.DataType(int(attribute(node, "to")))
    if target not in _PLAIN_TYPES:
        return None
    return np.asarray(inputs[0]).astype(target.numpy())


def _constant_of_shape(node: ir.Node, inputs: Inputs) -> Array | None:
    dims = [int(d) for d in np.asarray(inputs[0]).reshape(-1)]
    if int(np.prod(dims, dtype=np.float64)) > MAX_OUTPUT_ELEMENTS:
        return None
    tensor = attribute(node, "value")
    fill = np.zeros(1, np.float32) if tensor is None else tensor.numpy()
    return np.full(dims, fill.reshape(-1)[0], dtype=fill.dtype)


def _expand(node: ir.Node, inputs: Inputs) -> Array | None:
    data, dims = np.asarray(inputs[0]), [int(d) for d in np.asarray(inputs[1]).reshape(-1)]
    shape = np.broadcast_shapes(data.shape, tuple(dims))
    if int(np.prod(shape, dtype=np.float64)) > MAX_OUTPUT_ELEMENTS:
        return None
    return np.ascontiguousarray(np.broadcast_to(data, shape))


def _range(node: ir.Node, inputs: Inputs) -> Array:
    start, limit, delta = (np.asarray(i).reshape(()) for i in inputs)
    count = max(0, int(np.ceil((limit - start) / delta)))
    if count > MAX_OUTPUT_ELEMENTS:
        raise OverflowError("range too long")
    return np.asarray(start + np.arange(count, dtype=start.dtype) * delta, dtype=start.dtype)


def _divide(node: ir.Node, inputs: Inputs) -> Array | None:
    left, right = (np.asarray(i) for i in inputs)
    if np.issubdtype(left.dtype, np.integer):
        if not np.all(right):
            return None
        return np.asarray(
            np.trunc(left / right) if np.max(np.abs(left), initial=0) < 2**52 else left // right, left.dtype
        )
    return np.asarray(left / right, left.dtype)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[ir.Node, Inputs], Array]:
    def rule(node: ir.Node, inputs: Inputs) -> Array:
        return np.asarray(function(inputs[0], inputs[1]))

    return rule


def _unary(function: Callable[[Any], Any]) -> Callable[[ir.Node, Inputs], Array]:
    def rule(node: ir.Node, inputs: Inputs) -> Array:
        return np.asarray(function(inputs[0]), np.asarray(inputs[0]).dtype)

    return rule


def _transpose(node: ir.Node, inputs: Inputs) -> Array:
    return np.ascontiguousarray(np.transpose(inputs[0], attribute(node, "perm")))


_PLAIN_TYPES = frozenset(
    getattr(ir.DataType, name)
    for name in [
        "FLOAT",
        "DOUBLE",
        "FLOAT16",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "BOOL",
    ]
)

_RULES: dict[str, Callable[[ir.Node, Inputs], Array | None]] = {
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Concat": _concat,
    "Slice": _slice,
    "Reshape": _reshape,
    "Cast": _cast,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Range": _range,
    "Transpose": _transpose,
    "Div": _divide,
    "Add": _binary(np.add),
    "Sub": _binary(np.subtract),
    "Mul": _binary(np.multiply),
    "Equal": _binary(np.equal),
    "Greater": _binary(np.greater),
    "GreaterOrEqual": _binary(np.greater_equal),
    "Less": _binary(np.less),
    "LessOrEqual": _binary(np.less_equal),
    "And": _binary(np.logical_and),
    "Or": _binary(np.logical_or),
    "Not": _unary(np.logical_not),
    "Neg": _unary(np.negative),
    "Abs": _unary(np.abs),
    "Sqrt": _unary(np.sqrt),
    "Floor": _unary(np.floor),
    "Ceil": _unary(np.ceil),
    "Identity": _unary(lambda x: x),
    "Where": lambda node, inputs: np.asarray(np.where(inputs[0], inputs[1], inputs[2])),
    "Size": lambda node, inputs: np.asarray(np.asarray(inputs[0]).size, np.int64),
}
