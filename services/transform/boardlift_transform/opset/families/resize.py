"""Resize: what older versions can't say by attribute becomes one small matrix or index list per axis.

Before -> after: Resize-18+(axes, antialias, aspect policy, symmetric half pixel) -> Resize-11 where it says the same,
else Gather (nearest) or MatMul (linear, cubic) per axis with constants worked out in float64.

Exactness: nearest bit-exact; matrices round each weight once to the type of the graph.
"""

from __future__ import annotations

import numpy as np

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.families.interpolate import Axis, coordinates, matrix, nearest
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import FLOATS, Step


@adapter("Resize", 19)
def symmetric(step: Step) -> None:
    """half_pixel_symmetric came with 19."""
    if step.attr("coordinate_transformation_mode") == "half_pixel_symmetric":
        by_matrices(step)
    else:
        step.same()


@adapter("Resize", 18)
def newer_options(step: Step) -> None:
    """Antialias and aspect policies by matrices; axes spread to all axes."""
    policy = step.attr("keep_aspect_ratio_policy", "stretch")
    if (step.attr("antialias", 0) and step.attr("mode", "nearest") != "nearest") or (
        policy != "stretch" and is_given(step, step.x(3))
    ):
        by_matrices(step)
        return
    gone = ["antialias", "keep_aspect_ratio_policy", "axes"]
    axes = step.attr("axes")
    if axes is None:
        step.same(drop=gone)
        return
    rank = step.rank(step.x(0))
    axes = [a % rank for a in axes]
    n = len(axes)
    place = [axes.index(i) if i in axes else -1 for i in range(rank)]
    roi, scales, sizes = (name if is_given(step, name) else "" for name in (step.x(1), step.x(2), step.x(3)))
    if scales:
        scales = spread(step, scales, step.constant([1.0], np.float32), [p if p >= 0 else n for p in place])
    if sizes:
        whole = step.op("Shape", [step.x(0)])
        sizes = spread(step, sizes, whole, [p if p >= 0 else n + i for i, p in enumerate(place)])
    if roi:
        both = [p if p >= 0 else 2 * n for p in place] + [n + p if p >= 0 else 2 * n + 1 for p in place]
        roi = spread(step, roi, step.constant([0.0, 1.0], step.need_elem(roi)), both)
    step.same([step.x(0), roi, scales, sizes], drop=gone)


def is_given(step: Step, name: str) -> bool:
    """Whether an optional input is there: neither left out nor an empty tensor."""
    value = step.const(name)
    return bool(name) and (value is None or value.size > 0)


def spread(step: Step, given: str, rest: str, place: list[int]) -> str:
    """Values of some axes and of the others put in the order of the axes; constants stay constants."""
    a, b = step.const(given), step.const(rest)
    if a is not None and b is not None:
        return step.constant(np.concatenate([a.ravel(), b.ravel()])[place])
    joined = step.op("Concat", [given, rest], axis=0)
    return step.op("Gather", [joined, step.constant(place, np.int64)])


@adapter("Resize", 13)
def required_inputs(step: Step) -> None:
    """Roi and scales may not be left out at 11: empty tensors take their place."""
    nothing = step.constant(np.zeros(0), np.float32)
    step.same([step.x(0), step.x(1) or nothing, step.x(2) or nothing, step.x(3)])


@adapter("Resize", 11)
def asymmetric_only(step: Step) -> None:
    """Resize-10 knows asymmetric nearest (floor) and linear by scales; all else by matrices."""
    transform, mode = step.attr("coordinate_transformation_mode", "half_pixel"), step.attr("mode", "nearest")
    plain = transform == "asymmetric" and (mode == "linear" or step.attr("nearest_mode") == "floor")
    scales = step.const(step.x(2)) if step.x(2) else None
    if plain and mode == "nearest" and step.x(2) and (scales is None or scales.size):
        step.op("Resize", [step.x(0), step.x(2)], step.y(), at=10, mode=mode)
    else:
        by_matrices(step)


def by_matrices(step: Step) -> None:
    """Gather or MatMul per axis; needs static sizes and constant parameters."""
    x, mode = step.x(0), step.attr("mode", "nearest")
    transform = step.attr("coordinate_transformation_mode", "half_pixel")
    if mode != "nearest" and step.need_elem(x) not in FLOATS:
        raise NoForm(f"interpolates {step.type_name(x)}, which has no exact form here", "resize float tensors")
    extrapolates = transform == "tf_crop_and_resize"
    value, rank = x, step.rank(x)
    for index, axis in plan(step).items():
        if axis.is_copy():
            continue
        where = coordinates(axis, transform)
        if extrapolates and bool(((where < 0) | (where > axis.before - 1)).any()):
            raise NoForm("extrapolates outside its input together with antialias or policies", "crop inside the input")
        if mode == "nearest":
            picked = nearest(where, step.attr("nearest_mode", "round_prefer_floor"), axis.before)
            value = step.op("Gather", [value, step.constant(picked, np.int64)], axis=index)
        else:
            weights = matrix(
                axis, where, cubic=mode == "cubic", a=step.attr("cubic_coeff_a", -0.75),
                antialias=bool(step.attr("antialias", 0)), exclude=bool(step.attr("exclude_outside", 0)),
            )  # fmt: skip
            value = apply(step, value, weights, index, rank, step.need_elem(x))
    step.op("Identity", [value], step.y())


def apply(step: Step, value: str, weights: np.ndarray[tuple[int, ...], np.dtype[np.float64]], index: int, rank: int,
          elem: int) -> str:  # fmt: skip
    """Multiply one axis by a matrix [out, in]."""
    if index == rank - 1:
        return step.op("MatMul", [value, step.constant(weights.T, elem)])
    if index == rank - 2:
        return step.op("MatMul", [step.constant(weights, elem), value])
    order = [i for i in range(rank) if i != index] + [index]
    moved = step.op("MatMul", [step.op("Transpose", [value], perm=order), step.constant(weights.T, elem)])
    return step.op("Transpose", [moved], perm=[order.index(i) for i in range(rank)])


def plan(step: Step) -> dict[int, Axis]:
    """Sizes, scales and regions of the resized axes."""
    x = step.x(0)
    rank = step.rank(x)
    axes = [a % rank for a in step.attr("axes", list(range(rank)))]
    shape = step.shape(x) or ()
    scales = step.need_const(step.x(2), "scales").ravel() if step.x(2) else np.zeros(0)
    before = []
    for i, axis in enumerate(axes):
        size = shape[axis]
        if size is None and not (scales.size and scales[i] == 1.0):
            raise NoForm(f"needs the static size of axis {axis}", "give input_shapes")
        before.append(size or 0)
    if scales.size:
        factor = [float(np.float32(s)) for s in scales]
        after = [int(np.floor(np.float32(b) * np.float32(s))) for b, s in zip(before, scales, strict=True)]
    else:
        wanted = step.need_const(step.x(3), "sizes").ravel()
        factor = [int(w) / b for w, b in zip(wanted, before, strict=True)]
        after = [int(w) for w in wanted]
        policy = step.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(factor) if policy == "not_larger" else max(factor)
            factor, after = [one] * len(axes), [int(one * b + 0.5) for b in before]
    ends = region(step, len(axes))
    return {axis: Axis(before[i], after[i], factor[i], ends[i], ends[len(axes) + i]) for i, axis in enumerate(axes)}


def region(step: Step, n: int) -> list[float]:
    """Starts and ends of the region; all of it unless cropping."""
    if step.attr("coordinate_transformation_mode") != "tf_crop_and_resize":
        return [0.0] * n + [1.0] * n
    return [float(v) for v in step.need_const(step.x(1), "roi").ravel()]
