"""ScatterElements and ScatterND with a reduction: every target place looks through all updates for those meant for it.

Exactness: integers bit-exact; float sums in another order. Works for repeated indices, which plain scattering can't.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import FLOATS, Step

COMPARE_LIMIT = 1 << 24
"""Most comparisons: updates times places."""
FOLD_LIMIT = 128
"""Most integers that are folded one by one."""
_REDUCE = {"add": "ReduceSum", "mul": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}
_COMBINE = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


@adapter("ScatterElements", 16, 18)
@adapter("ScatterND", 16, 18)
def scatter(step: Step) -> None:
    """Without a reduction as it is; with one by comparison."""
    how = step.attr("reduction", "none")
    if how == "none":
        step.same(drop=["reduction"])
    elif step.node.op_type == "ScatterElements":
        elements(step, how)
    else:
        slices(step, how)


def neutral(step: Step, how: str, elem: int) -> str:
    """Value that changes nothing."""
    kind = np.dtype(helper.tensor_dtype_to_np_dtype(elem))
    if how in ("add", "mul"):
        return step.constant(0 if how == "add" else 1, elem)
    if elem in FLOATS:
        return step.constant(-np.inf if how == "max" else np.inf, elem)
    limits = np.iinfo(kind)
    return step.constant(limits.min if how == "max" else limits.max, elem)


def not_negative(step: Step, index: str, size: int) -> str:
    """Indices counted from the front."""
    wide = step.cast(index, TensorProto.INT64)
    below = step.op("Less", [wide, step.constant(0, np.int64)])
    return step.op("Where", [below, step.op("Add", [wide, step.constant(size, np.int64)]), wide])


def limit(step: Step, count: int) -> None:
    """Refuse what would compare too much."""
    if count > COMPARE_LIMIT:
        raise NoForm(
            f"scatters with reduction {step.attr('reduction')!r} over {count} pairs of update and place",
            "scatter less, or write the sum as a MatMul",
        )


def collapse(step: Step, how: str, value: str, axis: int, size: int) -> str:
    """Reduce one axis; integer sums and products one by one, because runtimes reduce them in floating point."""
    if how in ("max", "min") or step.need_elem(step.x(0)) in FLOATS:
        return step.reduce(_REDUCE[how], value, [axis], keepdims=0)
    if size > FOLD_LIMIT:
        raise NoForm(
            f"scatters {size} integers with reduction {how!r}, too many to fold", "scatter fewer, or use float32"
        )
    parts = step.split(value, [1] * size, axis) if size > 1 else [value]
    total = parts[0]
    for part in parts[1:]:
        total = step.op(_COMBINE[how], [total, part])
    return step.squeeze(total, [axis])


def elements(step: Step, how: str) -> None:
    """One axis: updates [.., J, ..] against places 0..K-1 as a new last axis."""
    data, index, update = step.x(0), step.x(1), step.x(2)
    shape, given = step.static_shape(data), step.static_shape(index)
    rank, elem = len(shape), step.need_elem(data)
    axis = step.attr("axis", 0) % rank
    places = shape[axis]
    limit(step, int(np.prod(given, dtype=np.int64)) * places)
    found = step.op(
        "Equal", [step.unsqueeze(not_negative(step, index, places), [rank]), step.constant(np.arange(places))]
    )
    mine = step.op("Where", [found, step.unsqueeze(update, [rank]), neutral(step, how, elem)])
    kept = collapse(step, how, mine, axis, given[axis])  # places are now the last axis
    order = [*range(axis), rank - 1, *range(axis, rank - 1)]
    moved = kept if axis == rank - 1 else step.op("Transpose", [kept], perm=order)
    rest = [0 if i == axis else shape[i] - given[i] for i in range(rank)]
    if any(rest):
        pads = step.constant([0] * rank + rest, np.int64)
        moved = step.op("Pad", [moved, pads, neutral(step, how, elem)], mode="constant")
    step.op(_COMBINE[how], [data, moved], step.y())


def slices(step: Step, how: str) -> None:
    """Flat places [N, R] against updates [M, R]."""
    data, index, update = step.x(0), step.x(1), step.x(2)
    shape, given = step.static_shape(data), step.static_shape(index)
    depth, elem = given[-1], step.need_elem(data)
    places, width = (int(np.prod(v, dtype=np.int64)) for v in (shape[:depth], shape[depth:]))
    count = int(np.prod(given[:-1], dtype=np.int64))
    limit(step, count * places * max(width, 1))
    flat = ""
    for i, part in enumerate(step.split(index, [1] * depth, len(given) - 1) if depth > 1 else [index]):
        at = not_negative(step, part, shape[i])
        flat = at if not flat else step.op("Add", [step.op("Mul", [flat, step.constant(shape[i], np.int64)]), at])
    found = step.op("Equal", [step.reshape(flat, [count, 1, 1]), step.constant(np.arange(places).reshape(1, -1, 1))])
    mine = step.op("Where", [found, step.reshape(update, [count, 1, width]), neutral(step, how, elem)])
    kept = step.reshape(collapse(step, how, mine, 0, count), list(shape))
    step.op(_COMBINE[how], [data, kept], step.y())
