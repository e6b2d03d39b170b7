"""Reduce*: axes move from an input back into the attribute, bool and integer inputs get a type that exists below.

Exactness: bit-exact; nothing but the place of the axes changes.
"""

from __future__ import annotations

from itertools import combinations

from onnx import TensorProto

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.scope import Shape
from boardlift_transform.opset.step import Step

_SINCE_18 = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


def move_axes(step: Step) -> None:
    """Axes input -> attribute; an empty list with noop means that only the inner function is applied."""
    keepdims = step.attr("keepdims", 1)
    axes: list[int] | None = None
    if step.x(1):
        value = step.const(step.x(1))
        axes = [int(a) for a in value.ravel()] if value is not None else deduce(step, keepdims)
    if not axes and step.attr("noop_with_empty_axes", 0):
        without_reduction(step)
        return
    step.same([step.x(0)], drop=["noop_with_empty_axes"], axes=axes or None)


def without_reduction(step: Step) -> None:
    """What is left of a reduction over no axis at all."""
    kind, x, y = step.node.op_type, step.x(0), step.y()
    if kind in ("ReduceL1", "ReduceL2"):
        step.op("Abs", [x], y)
    elif kind == "ReduceSumSquare":
        step.op("Mul", [x, x], y)
    elif kind == "ReduceLogSum":
        step.op("Log", [x], y)
    else:  # sum, mean, max, min, product, and the logarithm of the exponential
        step.op("Identity", [x], y)


def deduce(step: Step, keepdims: int) -> list[int]:
    """Axes made at run time: the declared shapes leave a single choice, or there is no form.

    Axes of size 1 don't matter, so any of them may be taken or left.
    """
    before, after = step.shape(step.x(0)), step.shape(step.y())
    found = choices(before, after, keepdims)
    if len(found) != 1 or step.attr("noop_with_empty_axes", 0):
        raise NoForm(
            f"takes its axes as the run-time input {step.x(1)!r}, an attribute at opset {step.target}",
            "make the axes a constant of the model",
        )
    return found[0]


def choices(before: Shape | None, after: Shape | None, keepdims: int) -> list[list[int]]:
    """Axis lists (without axes of size 1, if kept) that turn one static shape into the other."""
    if before is None or after is None or None in before or None in after:
        return []
    if keepdims:
        if len(before) != len(after):
            return []
        axes = [i for i, (b, a) in enumerate(zip(before, after, strict=True)) if b != a]
        return [axes] if axes and all(after[i] == 1 for i in axes) else []
    n = len(before) - len(after)
    if n <= 0 or len(before) > 8:
        return []
    picks = [
        c for c in combinations(range(len(before)), n) if tuple(d for i, d in enumerate(before) if i not in c) == after
    ]
    return [list(c) for c in picks]


for _name in _SINCE_18:
    adapter(f"Reduce{_name}", 18)(move_axes)
adapter("ReduceSum", 13)(move_axes)


@adapter("ReduceMax", 20)
@adapter("ReduceMin", 20)
def bool_as_byte(step: Step) -> None:
    """Bool -> uint8 between Casts."""
    if step.elem(step.x(0)) != TensorProto.BOOL:
        step.same()
        return
    wide = step.fresh("wide")
    step.op(
        step.node.op_type, [step.cast(step.x(0), TensorProto.UINT8), step.x(1)], wide,
        keepdims=step.attr("keepdims"), noop_with_empty_axes=step.attr("noop_with_empty_axes"),
    )  # fmt: skip
    step.cast(wide, TensorProto.BOOL, step.y())
