"""Squeeze, Unsqueeze, Split, Reshape, Shape: parameters move from inputs back into attributes, or into other operators.

Exactness: bit-exact; data are only moved.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step


@adapter("Squeeze", 13)
@adapter("Unsqueeze", 13)
def axes_to_attribute(step: Step) -> None:
    """Axes input -> attribute; axes made at run time -> Reshape to the declared static shape of the output."""
    if not step.x(1):
        step.same()
        return
    value = step.const(step.x(1))
    if value is not None:
        step.same([step.x(0)], axes=[int(a) for a in value.ravel()])
        return
    shape = step.shape(step.y())
    if shape is None or None in shape or 0 in shape:
        raise NoForm(
            f"takes its axes as the run-time input {step.x(1)!r}, an attribute at opset {step.target}",
            "make the axes a constant of the model",
        )
    step.reshape(step.x(0), [d for d in shape if d is not None], step.y())


@adapter("Split", 18)
def num_outputs(step: Step) -> None:
    """num_outputs -> sizes; the last part may be smaller. An unknown size is cut by Slices, exact for any size."""
    if step.x(1):
        step.same(drop=["num_outputs"])
        return
    parts, axis = step.attr("num_outputs", len(step.node.output)), step.attr("axis", 0)
    shape = step.shape(step.x(0))
    if shape is not None and shape[axis] is not None:
        size = int(shape[axis] or 0)
        chunk = -(-size // parts)
        sizes = [max(0, min(chunk, size - i * chunk)) for i in range(parts)]
        step.split(step.x(0), sizes, axis, [*step.node.output])
        return
    size_1 = step.dim(step.x(0), axis)
    chunk_1 = step.op("Div", [step.op("Add", [size_1, step.constant([parts - 1])]), step.constant([parts])])
    edges = [step.op("Mul", [chunk_1, step.constant([i])]) for i in range(parts + 1)]
    for i, name in enumerate(step.node.output):
        if name:
            step.op("Slice", [step.x(0), edges[i], edges[i + 1], step.constant([axis])], name)


@adapter("Split", 13)
def split_to_attribute(step: Step) -> None:
    """Sizes input -> attribute; sizes made at run time must be told by the declared shapes of the outputs."""
    if not step.x(1):
        step.same()
        return
    value = step.const(step.x(1))
    if value is not None:
        step.same([step.x(0)], split=[int(v) for v in value.ravel()])
        return
    axis = step.attr("axis", 0)
    shapes = [step.shape(o) for o in step.node.output]
    sizes = [s[axis] for s in shapes if s is not None and s[axis] is not None]
    if len(sizes) != len(shapes):
        raise NoForm(
            f"takes its sizes as the run-time input {step.x(1)!r}, an attribute at opset {step.target}",
            "make the sizes a constant of the model",
        )
    step.same([step.x(0)], split=sizes)


@adapter("Reshape", 14)
def allowzero(step: Step) -> None:
    """A zero taken literally means an empty result: ConstantOfShape; without zeros the attribute does nothing."""
    if not step.attr("allowzero", 0):
        step.same(drop=["allowzero"])
        return
    dims = step.const(step.x(1))
    if dims is None:
        shape = step.shape(step.y())
        if shape is None or None in shape:
            choose_at_run_time(step)
            return
        dims = np.array(shape, np.int64)
    if 0 in dims:
        step.op("ConstantOfShape", [step.constant(dims, np.int64)], step.y(), value=zero_of(step))
    else:
        step.op("Reshape", [step.x(0), step.constant(dims, np.int64)], step.y())


def zero_of(step: Step) -> TensorProto:
    """A one-element zero tensor in the type of the first input."""
    return helper.make_tensor("value", step.need_elem(step.x(0)), [1], [0])


def choose_at_run_time(step: Step) -> None:
    """If any wanted size is zero, an empty tensor of the wanted shape, else Reshape."""
    x, dims = step.x(0), step.x(1)
    zero = step.op("Cast", [step.op("Equal", [dims, step.constant([0])])], to=TensorProto.INT32)
    count = step.reduce("ReduceSum", zero, None, keepdims=0)
    some = step.op("Greater", [count, step.constant(0, np.int32)])
    names = [step.fresh("empty"), step.fresh("shaped")]
    nodes = [
        helper.make_node("ConstantOfShape", [dims], names[:1], name=step.fresh("node"), value=zero_of(step)),
        helper.make_node("Reshape", [x, dims], names[1:], name=step.fresh("node")),
    ]
    kind = helper.make_tensor_type_proto(step.need_elem(x), None)
    bodies = [
        helper.make_graph([n], o, [], [helper.make_value_info(o, kind)]) for n, o in zip(nodes, names, strict=True)
    ]
    step.op("If", [some], step.y(), then_branch=bodies[0], else_branch=bodies[1])


@adapter("Shape", 15)
def part_of_shape(step: Step) -> None:
    """start/end -> Slice of the whole shape, whose clamping is the same."""
    start, end = step.attr("start", 0), step.attr("end")
    if not start and end is None:
        step.same(drop=["start"])
        return
    whole = step.op("Shape", [step.x(0)])
    stop = np.iinfo(np.int64).max if end is None else end
    step.slice(whole, [start], [stop], [0], step.y())


@adapter("GatherND", 12)
def batch_dims(step: Step) -> None:
    """Batch axes become leading index coordinates: grid of batch numbers, concatenated before the indices."""
    count = step.attr("batch_dims", 0)
    if not count:
        step.same(drop=["batch_dims"])
        return
    indices = step.x(1)
    rank = step.rank(indices)
    one = step.slice(step.op("Shape", [indices]), [0], [rank - 1], [0])
    full = step.op("Concat", [one, step.constant([1])], axis=0)
    grids = []
    for axis in range(count):
        numbers = counting(step, indices, axis)
        dims = [1] * rank
        dims[axis] = -1
        grids.append(step.op("Expand", [step.reshape(numbers, dims), full]))
    joined = step.op("Concat", [*grids, indices], axis=-1 if step.target > 10 else rank - 1)
    step.op("GatherND", [step.x(0), joined], step.y())


def counting(step: Step, data: str, axis: int) -> str:
    """0, 1, ... up to the size of one axis, int64."""
    shape = step.shape(data)
    if shape is not None and shape[axis] is not None:
        return step.constant(np.arange(int(shape[axis] or 0), dtype=np.int64))
    return count_to(step, step.dim(data, axis))


def count_to(step: Step, size: str) -> str:
    """0, 1, ... size - 1 as int64, for a size given as int64 [1]."""
    if step.target > 10:
        zero, one = step.constant(0, np.int64), step.constant(1, np.int64)
        return step.op("Range", [zero, step.squeeze(size, [0]), one])
    ones = step.op("ConstantOfShape", [size], value=helper.make_tensor("value", TensorProto.INT64, [1], [1]))
    return step.reshape(step.op("NonZero", [ones]), [-1])
