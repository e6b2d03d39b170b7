"""Find channels of an output that quantisation wipes out, which a cosine over the whole output hides; pure.

Typical: box coordinates (0 to 640) and class scores (0 to 1) concatenated in one int8 tensor. The scores fall below one
quantisation step, the boxes dominate the cosine, and nothing is detected any more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boardlift_compiler.findings import Finding

Array = npt.NDArray[np.generic]


def lost_channels(got: Array, reference: Array) -> tuple[int, list[int], int]:
    """Return the axis whose channels are lost, their numbers, and how many of its channels vary in float.

    A channel is lost when the float reference varies in it and the quantised model always says the same. The axis with
    the largest share of lost channels counts; (0, [], 0) when nothing is lost.

    Args:
        got: ``[N, ...]`` of the quantised model.
        reference: ``[N, ...]`` of the float model, of the same shape.
    """
    worst: tuple[int, list[int], int] = (0, [], 0)
    share = 0.0
    for axis in range(1, reference.ndim):
        if reference.shape[axis] < 2:
            continue
        others = tuple(a for a in range(reference.ndim) if a != axis)
        varies = _varies(reference, others)
        lost = varies & (got.max(axis=others) == got.min(axis=others))
        if lost.any() and lost.sum() / varies.sum() > share:
            share = float(lost.sum() / varies.sum())
            worst = axis, [int(i) for i in np.flatnonzero(lost)], int(varies.sum())
    return worst


def _varies(array: Array, axes: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    # No difference is taken: one of int8 wraps around, and bool has none.
    return np.asarray(array.max(axis=axes) > array.min(axis=axes))


def describe_lost_channels(output: str, got: Array, reference: Array) -> list[Finding]:
    """Return a finding that names the lost channels of an output; empty when nothing is lost or one sample is all."""
    if got.shape != reference.shape or len(reference) * reference[0].size < 2:
        return []
    axis, lost, alive = lost_channels(got, reference)
    if not lost:
        return []
    named = ", ".join(str(i) for i in lost[:8]) + (" ..." if len(lost) > 8 else "")
    text = (
        f"Output {output}: {len(lost)} of {alive} channels along axis {axis} are one constant after quantisation and"
        f" vary in float ({named}); the cosine of the whole output hides that."
    )
    advice = "Cut the outputs before they are concatenated, or run the last layers in int16."
    return [Finding("OUTPUT_CHANNELS_LOST", "warning", text, output, advice)]
