"""How each operator looks on 4-D twins.

A rule gets the node and the twins, inserts the 4-D form before the node and returns one 4-D value per output, or None
when this node has a form that the rule does not cover. A rule must not change anything before it is sure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import attribute, constant_of, input_at, is_constant, shape_of
from boardlift_transform.lift.linear import lift_gemm, lift_matmul
from boardlift_transform.lift.twins import Twins, spread_array
from boardlift_transform.lift.windows import lift_convolution, lift_global_pool, lift_pool

Rule = Callable[[ir.Node, Twins], "list[ir.Value] | None"]

UNARY = frozenset(
    [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Clip",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "LeakyRelu",
        "Log",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
    ]
)
BINARY = frozenset(["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "PRelu"])
REDUCTIONS = frozenset(
    [
        "ReduceMean",
        "ReduceSum",
        "ReduceMax",
        "ReduceMin",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceProd",
        "ReduceLogSum",
        "ReduceLogSumExp",
    ]
)
SHAPE_ONLY = frozenset(["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"])


def copy_attributes(node: ir.Node, **changes: Any) -> dict[str, Any]:
    """Plain attribute values of a node, with changes; a change to None removes."""
    out = {name: attribute(node, name) for name in node.attributes}
    out.update(changes)
    return {name: value for name, value in out.items() if value is not None}


def lift_unary(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """f([N,C]) -> f([N,C,1,1])."""
    if any(not is_constant(v) for v in node.inputs[1:] if v is not None):
        return None
    x, out = node.inputs[0], node.outputs[0]
    if x is None or shape_of(x) != shape_of(out):
        return None
    inputs = [twins.twin(x, node), *node.inputs[1:]]
    return [
        twins.editor.node(node, node.op_type, inputs, twins.shape4(out), copy_attributes(node), hint=node.name or "")
    ]


def lift_binary(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """[N,C] op [N,C] or constant -> the same on twins, constants reshaped."""
    out = node.outputs[0]
    ranks = {len(v.shape) for v in node.inputs if v is not None and v.shape is not None and not is_constant(v)}
    if out.shape is None or ranks != {len(out.shape)}:
        return None
    if any(is_constant(v) and v is not None and len(shape_of(v) or ()) > len(out.shape) for v in node.inputs):
        return None
    inputs = [twins.operand(v, out, node) for v in node.inputs if v is not None]
    if any(v is None for v in inputs):
        return None
    return [
        twins.editor.node(
            node, node.op_type, inputs, twins.shape4(out), copy_attributes(node), hint=node.name or "", dtype=out.dtype
        )
    ]


def lift_reduction(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Reduce over mapped axes, then drop the reduced axes by moving length-1 axes."""
    x, out = node.inputs[0], node.outputs[0]
    shape = shape_of(x)
    if x is None or shape is None or len(node.inputs) > 1:
        return None
    argument = node.op_type in ("ArgMax", "ArgMin")
    axes = [int(attribute(node, "axis", 0))] if argument else attribute(node, "axes") or list(range(len(shape)))
    axes = [a % len(shape) for a in axes]
    layout = twins.axes(x)
    mapped = [layout[a] for a in axes]
    kept = [1 if i in mapped else d for i, d in enumerate(twins.shape4(x))]
    changes: dict[str, Any] = {"keepdims": 1}
    changes.update({"axis": mapped[0]} if argument else {"axes": mapped})
    reduced = twins.editor.node(
        node,
        node.op_type,
        [twins.twin(x, node)],
        kept,
        copy_attributes(node, **changes),
        hint=node.name or "",
        dtype=out.dtype,
    )
    return [twins.move(reduced, twins.shape4(out), node, f"{out.name}_4d")]


def lift_axis(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Concat, Split, Softmax, LogSoftmax: the axis is mapped."""
    like = next((v for v in node.inputs if v is not None and not is_constant(v)), None)
    if like is None or like.shape is None:
        return None
    rank = len(like.shape)
    default = {"Softmax": 1, "LogSoftmax": 1}.get(node.op_type, 0)
    axis = int(attribute(node, "axis", default)) % rank
    layout = twins.axes(like)
    if any(v is not None and len(shape_of(v) or ()) != rank for v in node.inputs):
        return None
    if any(twins.axes(v) != layout for v in (*node.inputs, *node.outputs) if v is not None and not is_constant(v)):
        return None
    inputs: list[ir.Value | None] = []
    for value in node.inputs:
        array = constant_of(value)
        if value is None:
            return None
        if array is None:
            inputs.append(twins.twin(value, node))
        else:
            inputs.append(twins.editor.constant(spread_array(array, layout), f"{value.name}_4d"))
    shapes = [twins.shape4(o) for o in node.outputs]
    return twins.editor.node_outputs(
        node, node.op_type, inputs, shapes, copy_attributes(node, axis=layout[axis]), hint=node.name or ""
    )


def lift_slice(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Slice with constant bounds: the axes are mapped."""
    x, out = node.inputs[0], node.outputs[0]
    if x is None or len(node.inputs) < 3 or any(not is_constant(v) for v in node.inputs[1:] if v is not None):
        return None
    starts = constant_of(node.inputs[1])
    listed = constant_of(input_at(node, 3))
    rank = len(x.shape or ())
    count = 0 if starts is None else starts.size
    axes = [int(a) % rank for a in (listed.tolist() if listed is not None else range(count))]
    layout = twins.axes(x)
    mapped = twins.editor.constant(np.asarray([layout[a] for a in axes], np.int64), f"{out.name}_axes")
    inputs = [twins.twin(x, node), node.inputs[1], node.inputs[2], mapped, *node.inputs[4:]]
    return [twins.editor.node(node, "Slice", inputs, twins.shape4(out), hint=node.name or "")]


def lift_pad(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Pad with constant widths: spread over four axes."""
    x, out = node.inputs[0], node.outputs[0]
    pads = constant_of(input_at(node, 1))
    if x is None or pads is None or any(not is_constant(v) for v in node.inputs[1:] if v is not None):
        return None
    layout = twins.axes(x)
    wide = [0] * 8
    for i, axis in enumerate(layout):
        wide[axis], wide[axis + 4] = int(pads[i]), int(pads[i + len(layout)])
    widths = twins.editor.constant(np.asarray(wide, np.int64), f"{out.name}_pads")
    inputs = [twins.twin(x, node), widths, *node.inputs[2:]]
    return [twins.editor.node(node, "Pad", inputs, twins.shape4(out), copy_attributes(node), hint=node.name or "")]


def lift_gather(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Gather with constant indices of rank 0 or 1."""
    x, out = node.inputs[0], node.outputs[0]
    indices = constant_of(input_at(node, 1))
    if x is None or is_constant(x) or indices is None or indices.ndim > 1 or x.shape is None or not (out.shape or ()):
        return None
    axis = twins.axes(x)[int(attribute(node, "axis", 0)) % len(x.shape)]
    if axis == 0:
        return None
    shape = twins.shape4(x)
    shape[axis] = indices.size
    flat = twins.editor.constant(indices.reshape(-1), f"{out.name}_indices")
    taken = twins.editor.node(node, "Gather", [twins.twin(x, node), flat], shape, {"axis": axis}, hint=node.name or "")
    return [twins.move(taken, twins.shape4(out), node, f"{out.name}_4d")]


def lift_transpose(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Transpose that keeps the batch: the permutation is mapped."""
    x, out = node.inputs[0], node.outputs[0]
    if x is None or x.shape is None:
        return None
    rank = len(x.shape)
    perm = attribute(node, "perm") or list(range(rank))[::-1]
    source, target = twins.axes(x), twins.axes(out)
    wide = [-1, -1, -1, -1]
    for i, axis in enumerate(target):
        wide[axis] = source[perm[i]]
    free = sorted(set(range(4)) - set(source))
    wide = [free.pop(0) if axis == -1 else axis for axis in wide]
    if wide[0] != 0:
        return None
    twin = twins.twin(x, node)
    return [twin if wide == [0, 1, 2, 3] else twins.editor.transpose(node, twin, wide, hint=node.name or "")]


def lift_shape_only(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """Reshape, Flatten, Squeeze, Unsqueeze between static shapes: one move of the twin."""
    x, out = node.inputs[0], node.outputs[0]
    before, after = shape_of(x), shape_of(out)
    if x is None or before is None or after is None or is_constant(x):
        return None
    if twins.shape4(x)[0] != twins.shape4(out)[0]:
        return None
    return [twins.move(twins.twin(x, node), twins.shape4(out), node, node.name or f"{out.name}_4d")]


def lift_normalization(node: ir.Node, twins: Twins) -> list[ir.Value] | None:
    """BatchNormalization and InstanceNormalization when the channel stays on axis 1."""
    x = node.inputs[0]
    if x is None or x.shape is None or len(x.shape) < 2 or twins.axes(x)[1] != 1 or len(node.outputs) != 1:
        return None
    if len(x.shape) == 2 and node.op_type == "InstanceNormalization":
        return None
    inputs = [twins.twin(x, node), *node.inputs[1:]]
    return [twins.editor.node(node, node.op_type, inputs, twins.shape4(x), copy_attributes(node), hint=node.name or "")]


RULES: dict[str, Rule] = {
    **dict.fromkeys(UNARY, lift_unary),
    **dict.fromkeys(BINARY, lift_binary),
    **dict.fromkeys(REDUCTIONS, lift_reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), lift_reduction),
    **dict.fromkeys(SHAPE_ONLY, lift_shape_only),
    **dict.fromkeys(("Concat", "Split", "Softmax", "LogSoftmax"), lift_axis),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), lift_normalization),
    **dict.fromkeys(("Conv", "ConvTranspose"), lift_convolution),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), lift_pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), lift_global_pool),
    "Slice": lift_slice,
    "Pad": lift_pad,
    "Gather": lift_gather,
    "Transpose": lift_transpose,
    "Gemm": lift_gemm,
    "MatMul": lift_matmul,
}
