"""Softmax family: since 13 along one axis, before that over everything from `axis` on.

Before -> after: Softmax-13(axis) -> Transpose, Softmax-11(last axis), Transpose; without Transposes where only axes of
size 1 follow. Where the rank is unknown: exp(x - max) / sum, which needs no rank.

Exactness: the same arithmetic on the same rows.
"""

from __future__ import annotations

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step


@adapter("Softmax", 13)
@adapter("LogSoftmax", 13)
@adapter("Hardmax", 13)
def along_one_axis(step: Step) -> None:
    """Bring the axis to the end, where the old and the new meaning agree."""
    axis = step.attr("axis", -1)
    shape = step.shape(step.x(0))
    if shape is None:
        without_rank(step, axis)
        return
    rank = len(shape)
    axis %= max(rank, 1)
    if all(d == 1 for d in shape[axis + 1 :]):
        step.same(axis=axis)
        return
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = step.op("Transpose", [step.x(0)], perm=order)
    made = step.op(step.node.op_type, [moved], axis=rank - 1)
    step.op("Transpose", [made], step.y(), perm=[order.index(i) for i in range(rank)])


def without_rank(step: Step, axis: int) -> None:
    """Forms that work for any rank."""
    kind, x = step.node.op_type, step.x(0)
    if axis == -1 and step.target > 10:
        step.same(axis=-1)
        return
    if kind == "Hardmax":
        raise step.refuse(f"needs the rank of {x!r}, which can't be inferred", "give input_shapes")
    low = step.op("Sub", [x, step.reduce("ReduceMax", x, [axis])])
    power = step.op("Exp", [low])
    total = step.reduce("ReduceSum", power, [axis])
    if kind == "Softmax":
        step.op("Div", [power, total], step.y())
    else:
        step.op("Sub", [low, step.op("Log", [total])], step.y())
