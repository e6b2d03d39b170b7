"""CumProd: prefix products by doubling steps, log2(n) of them.

Exactness: same products, other order: float results differ by rounding only, integers not at all.
"""

from __future__ import annotations

import numpy as np

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step


@adapter("CumProd", 26)
def cumulative_product(step: Step) -> None:
    """y *= shift(y, 1); y *= shift(y, 2); y *= shift(y, 4) ... with ones coming in."""
    x = step.x(0)
    rank = step.rank(x)
    axis = int(step.need_const(step.x(1), "axis").ravel()[0]) % rank
    shape = step.shape(x)
    size = shape[axis] if shape is not None else None
    if size is None:
        raise step.refuse("needs a static size along its axis", "give input_shapes")
    back = bool(step.attr("reverse", 0))
    value = shifted(step, x, 1, axis, rank, size, back) if step.attr("exclusive", 0) else x
    distance = 1
    while distance < size:
        value = step.op("Mul", [value, shifted(step, value, distance, axis, rank, size, back)])
        distance *= 2
    step.op("Identity", [value], step.y())


def shifted(step: Step, value: str, distance: int, axis: int, rank: int, size: int, back: bool) -> str:
    """Move along the axis, ones coming in at the near end (at the far end when going back)."""
    kept = step.slice(value, [distance if back else 0], [size if back else size - distance], [axis])
    pads = np.zeros(2 * rank, np.int64)
    pads[axis + rank * back] = min(distance, size)
    return step.op("Pad", [kept, step.constant(pads), step.like(1, value)], mode="constant")
