"""Pad: axes and the wrap mode go, bool data are padded as bytes.

Exactness: bit-exact.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step


@adapter("Pad", 18)
def axes_to_all(step: Step) -> None:
    """Pads of some axes -> pads of all axes, with zeros for the others; works for pads made at run time too."""
    if not step.x(3):
        step.same()
        return
    rank = step.rank(step.x(0))
    axes = [int(a) % rank for a in step.need_const(step.x(3), "axes").ravel()]
    place = [len(axes) * 2] * (2 * rank)
    for i, axis in enumerate(axes):
        place[axis], place[rank + axis] = i, len(axes) + i
    given = step.const(step.x(1))
    if given is not None:
        pads = step.constant(np.append(given.ravel(), 0)[place], np.int64)
    else:
        joined = step.op("Concat", [step.x(1), step.constant([0])], axis=0)
        pads = step.op("Gather", [joined, step.constant(place, np.int64)])
    step.same([step.x(0), pads, step.x(2)])


@adapter("Pad", 19)
def wrap_by_concat(step: Step) -> None:
    """Mode wrap: the far end in front, the near end behind, axis by axis."""
    if step.attr("mode", "constant") != "wrap":
        step.same()
        return
    x = step.x(0)
    shape = step.static_shape(x)
    pads = step.need_const(step.x(1), "pads").ravel()
    axes = [int(a) % len(shape) for a in step.need_const(step.x(3), "axes").ravel()] if step.x(3) else range(len(shape))
    value = x
    for i, axis in enumerate(axes):
        before, after, size = int(pads[i]), int(pads[len(axes) + i]), shape[axis]
        if not before and not after:
            continue
        index = np.arange(-before, size + after) % size
        value = step.op("Gather", [value, step.constant(index, np.int64)], axis=axis)
    step.op("Identity", [value], step.y())


@adapter("Pad", 13)
def bool_as_int(step: Step) -> None:
    """Bool -> int32 between Casts; other late types have no form."""
    x = step.x(0)
    if step.elem(x) != TensorProto.BOOL:
        step.same()
        return
    value = step.cast(step.x(2), TensorProto.INT32) if step.x(2) else ""
    wide = step.op("Pad", [step.cast(x, TensorProto.INT32), step.x(1), value], mode=step.attr("mode"))
    step.cast(wide, TensorProto.BOOL, step.y())
