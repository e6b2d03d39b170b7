"""Trilu, CenterCropPad, TensorScatter, ArgMax: masks and indices worked out from shapes.

Exactness: bit-exact; values are only selected.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from boardlift_transform.opset.families.compare import RUNS
from boardlift_transform.opset.families.expansion import expand_body
from boardlift_transform.opset.families.shape import counting
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step

MASK_LIMIT = 1 << 20
"""Largest triangle kept as a constant; a larger one is made by comparing row and column numbers."""
T = TensorProto


@adapter("Trilu", 14)
def triangle(step: Step) -> None:
    """Where(triangle, x, 0)."""
    x, upper = step.x(0), step.attr("upper", 1)
    shape, k = step.shape(x), step.const(step.x(1)) if step.x(1) else np.asarray(0)
    elem = step.need_elem(x)
    if shape is not None and None not in shape[-2:] and k is not None:
        rows, columns = int(shape[-2] or 0), int(shape[-1] or 0)
        if rows * columns <= MASK_LIMIT:
            grid = np.arange(columns)[None, :] - np.arange(rows)[:, None]
            mask = step.constant(grid >= int(k) if upper else grid <= int(k), np.bool_)
            choose(step, mask, x, elem)
            return
    rank = step.rank(x)
    row = step.unsqueeze(counting(step, x, rank - 2), [1])
    column = counting(step, x, rank - 1)
    grid_name = step.op("Sub", [column, row])
    bound = step.constant(int(k), np.int64) if k is not None else step.reshape(step.cast(step.x(1), T.INT64), [-1])
    if upper:
        mask = step.op("Not", [step.op("Less", [grid_name, bound])])
    else:
        mask = step.op("Not", [step.op("Greater", [grid_name, bound])])
    choose(step, mask, x, elem)


def choose(step: Step, mask: str, x: str, elem: int) -> None:
    """Where(mask, x, 0), in a type that Where has kernels for."""
    if elem == T.BOOL:
        step.op("And", [mask, x], step.y())
        return
    wide = RUNS.get(elem, elem)
    value = step.cast(x, wide)
    if wide == elem:
        step.op("Where", [mask, value, step.constant(0, wide)], step.y())
    else:
        step.cast(step.op("Where", [mask, value, step.constant(0, wide)]), elem, step.y())


@adapter("CenterCropPad", 18)
def center(step: Step) -> None:
    """Slice what is too long, Pad what is too short; the odd element goes to the end."""
    x = step.x(0)
    wanted, shape = step.const(step.x(1)), step.shape(x)
    if shape is None or wanted is None:
        expand_body(step)
        return
    axes = [a % len(shape) for a in step.attr("axes", list(range(len(shape))))]
    if any(shape[a] is None for a in axes):
        expand_body(step)
        return
    rank = len(shape)
    starts, ends, cut = [], [], []
    pads = np.zeros(2 * rank, np.int64)
    for axis, want in zip(axes, wanted.ravel().tolist(), strict=True):
        have = int(shape[axis] or 0)
        if have > want:
            begin = (have - want) // 2
            starts.append(begin)
            ends.append(begin + want)
            cut.append(axis)
        else:
            pads[axis] = (want - have) // 2
            pads[axis + rank] = want - have - pads[axis]
    value = step.slice(x, starts, ends, cut) if cut else x
    if pads.any():
        value = step.op("Pad", [value, step.constant(pads)], mode="constant")
    step.op("Identity", [value], step.y())


@adapter("TensorScatter", 24)
def tensor_scatter(step: Step) -> None:
    """ScatterElements along the sequence axis at write_index + 0, 1, 2, ..."""
    cache, update, first = step.x(0), step.x(1), step.x(2)
    rank = step.rank(cache)
    axis = step.attr("axis", -2) % rank
    place = [1] * rank
    place[axis] = -1
    index = step.reshape(counting(step, update, axis), place)
    if first:
        index = step.op("Add", [index, step.reshape(step.cast(first, T.INT64), [-1] + [1] * (rank - 1))])
    if step.attr("mode", "linear") == "circular":
        index = step.op("Mod", [index, step.dim(cache, axis)])
    full = step.op("Expand", [index, step.op("Shape", [update], at=step.target)])
    step.op("ScatterElements", [cache, full, update], step.y(), axis=axis)


@adapter("ArgMax", 12)
@adapter("ArgMin", 12)
def last_index(step: Step) -> None:
    """The last of equal extremes: look from the end and turn the index round."""
    if not step.attr("select_last_index", 0):
        step.same(drop=["select_last_index"])
        return
    x, axis = step.x(0), step.attr("axis", 0)
    low = np.iinfo(np.int64).min + 1
    turned = step.slice(x, [-1], [low], [axis], steps=[-1])
    index = step.op(step.node.op_type, [turned], axis=axis, keepdims=step.attr("keepdims", 1))
    size = (
        step.dim(x, axis)
        if step.shape(x) is not None
        else step.op("Gather", [step.op("Shape", [x]), step.constant([axis])])
    )
    last = step.squeeze(step.op("Sub", [size, step.constant([1])]), [0])
    step.op("Sub", [last, index], step.y())
