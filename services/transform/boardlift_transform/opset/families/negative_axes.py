"""Below opset 11 axes and indices count from the front only.

Exactness: bit-exact; an axis gets its other name, a negative index the size added.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step

_ONE_AXIS = {
    "ArgMax": 0, "ArgMin": 0, "Concat": None, "Flatten": 1, "Hardmax": 1, "LogSoftmax": 1, "Softmax": 1, "Split": 0,
    "Compress": None,
}  # fmt: skip
"""Operators with one axis attribute, and its default."""
_REDUCE = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def one_axis(step: Step) -> None:
    """Axis from the front."""
    axis = step.attr("axis", _ONE_AXIS[step.node.op_type])
    if axis is None or axis >= 0:
        step.same()
    else:
        step.same(axis=axis + step.rank(step.x(0)))


def many_axes(step: Step) -> None:
    """Axes from the front; those of Unsqueeze count in the result."""
    axes = step.attr("axes")
    if axes is None or min(axes, default=0) >= 0:
        step.same()
        return
    rank = step.rank(step.x(0)) + (len(axes) if step.node.op_type == "Unsqueeze" else 0)
    step.same(axes=[a % rank for a in axes])


for _name in _ONE_AXIS:
    adapter(_name, 11)(one_axis)
for _name in (*(f"Reduce{r}" for r in _REDUCE), "Squeeze", "Unsqueeze"):
    adapter(_name, 11)(many_axes)


def from_front(step: Step, index: str, size: str) -> str:
    """Indices without negative ones; constants that have none stay."""
    found, length = step.const(index), step.const(size)
    known = None if found is None else found.astype(np.int64)
    if known is not None and known.size and known.min() >= 0:
        return index
    if known is not None and length is not None:
        return step.constant(np.where(known < 0, known + int(length[0]), known), step.need_elem(index))
    kind = step.need_elem(index)
    zero = step.constant(0, kind)
    moved = step.op("Add", [index, step.cast(size, kind)])
    return step.op("Where", [step.op("Less", [index, zero]), moved, index])


@adapter("Gather", 11)
def gather(step: Step) -> None:
    """Axis and indices from the front."""
    axis = step.attr("axis", 0)
    if axis < 0:
        axis += step.rank(step.x(0))
    known = step.const(step.x(1))
    if known is not None and known.size and known.min() >= 0:
        step.same(axis=axis)
        return
    step.same([step.x(0), from_front(step, step.x(1), size_of(step, step.x(0), axis))], axis=axis)


def size_of(step: Step, data: str, axis: int) -> str:
    """Size of an axis as int64 [1]; written with Slice, so that no Gather asks for another one."""
    shape = step.shape(data)
    if shape is not None and shape[axis] is not None:
        return step.constant([shape[axis]], np.int64)
    return step.slice(step.op("Shape", [data]), [axis], [axis + 1], [0])


@adapter("Slice", 11)
def slice_axes(step: Step) -> None:
    """Axes from the front."""
    known = step.const(step.x(3)) if step.x(3) else None
    if not step.x(3) or (known is not None and known.min() >= 0):
        step.same()
        return
    if known is None:
        step.need_const(step.x(3), "axes")
        return
    inputs = [*step.node.input]
    inputs[3] = step.constant(known % step.rank(step.x(0)), known.dtype)
    step.same(inputs)


@adapter("OneHot", 11)
def one_hot(step: Step) -> None:
    """Indices from the front; the operator takes no others before 11."""
    index, depth = step.x(0), step.x(1)
    kind = step.need_elem(index)
    work = kind if kind in (TensorProto.INT64, TensorProto.FLOAT) else TensorProto.INT64
    value, size = step.cast(index, work), step.cast(depth, work)
    zero = step.constant(0, work)
    moved = step.op("Where", [step.op("Less", [value, zero]), step.op("Add", [value, size]), value])
    known = step.op("Where", [step.op("Less", [moved, zero]), size, moved])  # below -depth: nowhere, like depth itself
    step.same([known, depth, step.x(2)])


@adapter("TopK", 11)
def top_k(step: Step) -> None:
    """The smallest are the largest of the negated; axis from the front; 32-bit integers as doubles."""
    x, axis = step.x(0), step.attr("axis", -1)
    if axis < 0:
        axis += step.rank(x)
    kind, largest = step.need_elem(x), step.attr("largest", 1)
    exact = {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.UINT8, TensorProto.UINT16}
    floats = kind in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
    if not floats and kind not in (*exact, TensorProto.UINT32):
        raise step.refuse(f"sorts {step.type_name(x)}, which has no exact form below opset 11", "sort float32")
    if floats and largest:
        step.same(drop=["largest", "sorted"], axis=axis)
        return
    value = x if floats else step.cast(x, TensorProto.DOUBLE)
    if not largest:
        value = step.op("Neg", [value])
    best = step.multi("TopK", [value, step.x(1)], ["", step.y(1)], axis=axis)[0]
    if not largest:
        best = step.op("Neg", [best], step.y(0) if floats else "")
    if not floats:
        step.cast(best, kind, step.y(0))


@adapter("Scan", 11)
def scan_axes(step: Step) -> None:
    """Only axes from the front."""
    axes = [a for k in ("scan_input_axes", "scan_output_axes") for a in step.attr(k, [])]
    if min(axes, default=0) < 0:
        raise step.refuse("scans along a negative axis, which it can't below opset 11", "count axes from the front")
    step.same()
