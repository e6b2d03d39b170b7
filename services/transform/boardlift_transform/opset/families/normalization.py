"""Normalisations: mean and variance by two reductions, deviations squared after the mean is off (no cancellation).

float16 inputs are worked in float32 where stash_type says so, which is its default.
"""

from __future__ import annotations

from onnx import TensorProto

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step


def stash(step: Step, x: str) -> tuple[str, int, int]:
    """X in the type of the statistics, that type, and the type of x; doubles are never narrowed."""
    elem = step.need_elem(x)
    kind = TensorProto.DOUBLE if elem == TensorProto.DOUBLE else step.attr("stash_type", 1)
    return (step.cast(x, kind) if kind != elem else x), kind, elem


def trailing_axes(step: Step, x: str, axis: int) -> list[int]:
    """Axes from `axis` to the last; [-1] needs no rank from opset 11 on."""
    if axis == -1 and step.target > 10:
        return [-1]
    rank = step.rank(x)
    return list(range(axis % rank, rank))


@adapter("LayerNormalization", 17)
def layer_norm(step: Step) -> None:
    """(x - mean) / sqrt(var + eps) * scale + bias."""
    x, scale, bias = step.x(0), step.x(1), step.x(2)
    work, kind, elem = stash(step, x)
    axes = trailing_axes(step, x, step.attr("axis", -1))
    same, asked = kind == elem, step.attr("stash_type", 1)
    mean = step.reduce("ReduceMean", work, axes, step.y(1) if kind == asked else "")
    if step.y(1) and kind != asked:
        step.cast(mean, asked, step.y(1))
    away = step.op("Sub", [work, mean])
    variance = step.reduce("ReduceMean", step.op("Mul", [away, away]), axes)
    spread = step.op("Sqrt", [step.op("Add", [variance, step.constant(step.attr("epsilon", 1e-5), kind)])])
    if step.y(2):
        inverse = step.op("Reciprocal", [spread], step.y(2) if kind == asked else "")
        if kind != asked:
            step.cast(inverse, asked, step.y(2))
    normal = step.op("Div", [away, spread])
    if not same:
        normal = step.cast(normal, elem)
    scaled = step.op("Mul", [normal, scale], "" if bias else step.y())
    if bias:
        step.op("Add", [scaled, bias], step.y())


@adapter("RMSNormalization", 23)
def rms_norm(step: Step) -> None:
    """X / sqrt(mean(x^2) + eps) * scale."""
    x, scale = step.x(0), step.x(1)
    work, kind, elem = stash(step, x)
    axes = trailing_axes(step, x, step.attr("axis", -1))
    square = step.reduce("ReduceMean", step.op("Mul", [work, work]), axes)
    spread = step.op("Sqrt", [step.op("Add", [square, step.constant(step.attr("epsilon", 1e-5), kind)])])
    normal = step.op("Div", [work, spread])
    if kind != elem:
        normal = step.cast(normal, elem)
    out_type = step.need_elem(scale)
    step.op("Mul", [normal if out_type == elem else step.cast(normal, out_type), scale], step.y())


@adapter("GroupNormalization", 18, 21)
def group_norm(step: Step) -> None:
    """Normalise over [N, groups, rest], then scale and bias per channel (per group below version 21).

    InstanceNormalization would be shorter, but runtimes work it as x * a + b, which cancels where the mean is large.
    """
    x, scale, bias, groups = step.x(0), step.x(1), step.x(2), step.attr("num_groups")
    elem = step.need_elem(x)
    kind = step.attr("stash_type", 1) if step.since >= 21 and elem != TensorProto.DOUBLE else elem
    flat = step.reshape(step.cast(x, kind) if kind != elem else x, [0, groups, -1])
    away = step.op("Sub", [flat, step.reduce("ReduceMean", flat, [2])])
    variance = step.reduce("ReduceMean", step.op("Mul", [away, away]), [2])
    spread = step.op("Sqrt", [step.op("Add", [variance, step.constant(step.attr("epsilon", 1e-5), kind)])])
    normal = step.op("Div", [away, spread])
    if kind != elem:
        normal = step.cast(normal, elem)
    if step.since < 21:
        weights = [step.reshape(v, [1, -1, 1]) for v in (scale, bias)]
        moved = step.op("Add", [step.op("Mul", [normal, weights[0]]), weights[1]])
        back_to(step, moved, x, step.y())
        return
    back = back_to(step, normal, x, "")
    weights = [step.reshape(v, [1, -1] + [1] * (step.rank(x) - 2)) for v in (scale, bias)]
    step.op("Add", [step.op("Mul", [back, weights[0]]), weights[1]], step.y())


def back_to(step: Step, value: str, like: str, out: str) -> str:
    """Reshape to the shape of another value."""
    shape = step.shape(like)
    if shape is not None and sum(d is None for d in shape) <= 1 and 0 not in shape:
        return step.reshape(value, [-1 if d is None else d for d in shape], out)
    return step.op("Reshape", [value, step.op("Shape", [like], at=step.target)], out, at=step.target)


@adapter("BatchNormalization", 14, 15)
def batch_norm(step: Step) -> None:
    """Inference form as it is; mixed types in float32; training form by its definition."""
    if step.attr("training_mode", 0):
        batch_norm_training(step)
        return
    kinds = {step.elem(n) for n in step.node.input} - {0}
    if len(kinds) <= 1:
        step.same(drop=["training_mode"])
        return
    wide = max(kinds, key=lambda k: {1: 1, 10: 0, 11: 2}.get(k, 0))
    inner = step.fresh("wide")
    step.op(
        "BatchNormalization", [step.cast(n, wide) for n in step.node.input], inner,
        epsilon=step.attr("epsilon", 1e-5), momentum=step.attr("momentum", 0.9),
    )  # fmt: skip
    step.cast(inner, step.need_elem(step.x(0)), step.y())


def batch_norm_training(step: Step) -> None:
    """Statistics of the batch, and the running ones moved towards them."""
    x, momentum = step.x(0), step.attr("momentum", 0.9)
    elem, rank = step.need_elem(x), step.rank(x)
    axes = [i for i in range(rank) if i != 1]
    kind = max((step.need_elem(n) for n in step.node.input[:5]), key=lambda k: {1: 1, 10: 0, 11: 2}.get(k, 0))
    scale, bias, old_mean, old_var = (step.cast(step.x(i), kind) for i in range(1, 5))
    work = step.cast(x, kind)
    mean = step.reduce("ReduceMean", work, axes)
    away = step.op("Sub", [work, mean])
    var = step.reduce("ReduceMean", step.op("Mul", [away, away]), axes)
    spread = step.op("Sqrt", [step.op("Add", [var, step.constant(step.attr("epsilon", 1e-5), kind)])])
    dims = [1, -1] + [1] * (rank - 2)
    scaled = step.op("Mul", [step.op("Div", [away, spread]), step.reshape(scale, dims)])
    same = kind == elem
    done = step.op("Add", [scaled, step.reshape(bias, dims)], step.y() if same else "")
    if not same:
        step.cast(done, elem, step.y())
    for i, (old, new) in enumerate(((old_mean, mean), (old_var, var)), start=1):
        if not step.y(i):
            continue
        kept = step.op("Mul", [old, step.constant(momentum, kind)])
        added = step.op("Mul", [step.reshape(new, [-1]), step.constant(1.0 - momentum, kind)])
        target = step.need_elem(step.x(2 + i))
        moved = step.op("Add", [kept, added], step.y(i) if target == kind else "")
        if target != kind:
            step.cast(moved, target, step.y(i))
