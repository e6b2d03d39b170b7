"""CumProd: prefix products by doubling steps, log2(n) of them.

Exactness: same products, other order: float results differ by rounding only, integers not at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import FLOATS, Step


@adapter("CumProd", 26)
def cumulative_product(step: Step) -> None:
    """Products by doubling steps."""
    doubling(step, "Mul", 1)


def doubling(step: Step, kind: str, neutral: int) -> None:
    """Y = y * shift(y, 1); y = y * shift(y, 2); y = y * shift(y, 4) ... with the neutral element coming in.

    Args:
        step: A CumSum or CumProd.
        kind: Mul or Add.
        neutral: 1 or 0.
    """
    x = step.x(0)
    rank = step.rank(x)
    axis = int(step.need_const(step.x(1), "axis").ravel()[0]) % rank
    size = step.static_shape_from(x, axis)[0]
    back = bool(step.attr("reverse", 0))
    run = Run(axis, rank, size, back, neutral)
    value = shifted(step, x, 1, run) if step.attr("exclusive", 0) else x
    distance = 1
    while distance < size:
        value = step.op(kind, [value, shifted(step, value, distance, run)])
        distance *= 2
    step.op("Identity", [value], step.y())


@dataclass(frozen=True)
class Run:
    """The axis that a running total goes along."""

    axis: int
    rank: int
    size: int
    back: bool
    """From the far end."""
    neutral: int
    """What comes in at the near end."""


def shifted(step: Step, value: str, distance: int, run: Run) -> str:
    """Move along the axis."""
    start, stop = (distance, run.size) if run.back else (0, run.size - distance)
    kept = step.slice(value, [start], [stop], [run.axis])
    if step.since <= 11 and step.elem(value) not in FLOATS:  # Pad knows no integers there, and there are no NaNs
        end = step.slice(value, [0], [min(distance, run.size)], [run.axis])
        none = step.op("Sub", [end, end])
        parts = [kept, none] if run.back else [none, kept]
        return step.op("Concat", parts, axis=run.axis)
    pads = [0] * (2 * run.rank)
    pads[run.axis + run.rank * run.back] = min(distance, run.size)
    if step.since <= 11:
        return step.op("Pad", [kept], pads=pads, value=float(run.neutral), mode="constant")
    return step.op("Pad", [kept, step.constant(pads, np.int64), step.like(run.neutral, value)], mode="constant")
