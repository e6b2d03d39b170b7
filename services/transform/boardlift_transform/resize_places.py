"""Where each output element of a Resize comes from along one axis, by ONNX's definition; pure numpy."""

from __future__ import annotations

import numpy as np

from boardlift_transform.edit_graph import Array


def places(mode: str, size: int, count: int, scale: float) -> Array | None:
    """Return the place in the input, in elements, of each output element; None for a cut-out by roi.

    Args:
        mode: The attribute coordinate_transformation_mode.
        size: Elements of the input.
        count: Elements of the output.
        scale: The scale as given, or the ratio of the sizes where sizes are given.
    """
    out = np.arange(count, dtype=np.float64)
    if mode == "asymmetric":
        return out / scale
    if mode == "align_corners":
        return out * (size - 1) / (count - 1) if count > 1 else out * 0
    if mode == "pytorch_half_pixel" and count == 1:
        return out * 0
    return (out + 0.5) / scale - 0.5 if mode in ("half_pixel", "pytorch_half_pixel") else None


def nearest_rows(rounding: str, place: Array, size: int) -> Array:
    """Return the element that nearest takes for each place.

    Args:
        rounding: The attribute nearest_mode.
        place: From :func:`places`.
        size: Elements of the input.
    """
    taken = {"floor": np.floor(place), "ceil": np.ceil(place), "round_prefer_floor": np.ceil(place - 0.5)}
    return np.clip(taken.get(rounding, np.floor(place + 0.5)), 0, size - 1).astype(np.int64)


def shift_of(rows: Array, scale: int, size: int) -> int | None:
    """Return how far the plain repetition ``i // scale`` must be read off its place, edges repeated.

    None when the rows are no shifted repetition.
    """
    at = np.arange(len(rows))
    found = (d for d in range(-scale, scale + 1) if np.array_equal(np.clip((at + d) // scale, 0, size - 1), rows))
    return min(found, key=abs, default=None)


def even_steps(place: Array, size: int) -> tuple[int, int, int] | None:
    """Return first element, step and how many are meant, when each output is one element or the mean of two.

    None when the steps are uneven or leave the input.
    """
    place = np.round(place, 3)  # a third is not exact in float32
    steps = np.diff(place)
    step = int(steps[0]) if len(steps) else 1
    part = float(place[0] - np.floor(place[0]))
    if step < 1 or not np.array_equal(steps, np.full(len(steps), float(step))) or part not in (0.0, 0.5):
        return None
    start, count = int(np.floor(place[0])), 1 if part == 0.0 else 2
    return (start, step, count) if start >= 0 and place[-1] <= size - 1 else None


def linear_weights(place: Array, size: int) -> Array:
    """Return the weights ``[output, input]`` float64 of linear interpolation, edges repeated."""
    inside = np.clip(place, 0, size - 1)
    low = np.floor(inside).astype(np.int64)
    part: Array = (inside - low)[:, None]
    eye: Array = np.eye(size)
    weights: Array = eye[low] * (1 - part) + eye[np.minimum(low + 1, size - 1)] * part
    return weights
