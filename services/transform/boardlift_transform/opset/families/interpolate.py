"""Work out one axis of a Resize as a matrix [out, in], in float64.

Every mode of Resize is separable: one small matrix per axis says it all. The matrices hold what older opsets can't do
by attribute: antialiasing, the symmetric half pixel, one scale for all axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """One axis of a Resize."""

    before: int
    """Size in."""
    after: int
    """Size out."""
    scale: float
    """Scale that the coordinates use; not always after / before."""
    begin: float = 0.0
    """Start of the region, normalised."""
    end: float = 1.0
    """End of the region, normalised."""

    def is_copy(self) -> bool:
        """Whether nothing happens along this axis."""
        return self.scale == 1.0 and self.before == self.after and (self.begin, self.end) == (0.0, 1.0)


def coordinates(axis: Axis, transform: str) -> Floats:
    """Where each output element lies in the input.

    Args:
        axis: The axis.
        transform: coordinate_transformation_mode.

    Returns:
        float64 [after].

    Raises:
        ValueError: The transformation is not known.
    """
    out = np.arange(axis.after, dtype=np.float64)
    width = axis.scale * axis.before
    if transform == "align_corners":
        return out * 0.0 if axis.after == 1 else out * ((axis.before - 1) / (axis.after - 1))
    if transform == "asymmetric":
        return out / axis.scale
    if transform == "pytorch_half_pixel" and axis.after == 1:
        return out * 0.0
    if transform in ("half_pixel", "pytorch_half_pixel"):
        return (out + 0.5) / axis.scale - 0.5
    if transform == "half_pixel_symmetric":
        return axis.before / 2 * (1 - axis.after / width) + (out + 0.5) / axis.scale - 0.5
    if transform == "tf_crop_and_resize":
        last = axis.before - 1
        if axis.after == 1:
            return out * 0.0 + 0.5 * (axis.begin + axis.end) * last
        return axis.begin * last + out * ((axis.end - axis.begin) * last / (axis.after - 1))
    raise ValueError(f"unknown coordinate_transformation_mode {transform!r}")


def nearest(where: Floats, rule: str, size: int) -> Ints:
    """Index of the element that each coordinate takes.

    Args:
        where: Coordinates.
        rule: nearest_mode.
        size: Size of the axis.

    Returns:
        int64, clamped into the axis.
    """
    rules: dict[str, Callable[[Floats], Floats]] = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    picked: Ints = np.clip(rules[rule](where), 0, size - 1).astype(np.int64)
    return picked


def weight(distance: Floats, cubic: bool, a: float) -> Floats:
    """Kernel at a distance: the tent, or the cubic convolution with coefficient `a`."""
    d = np.abs(distance)
    if not cubic:
        return np.maximum(0.0, 1.0 - d)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def matrix(axis: Axis, where: Floats, *, cubic: bool, a: float, antialias: bool, exclude: bool) -> Floats:
    """Interpolation matrix of one axis.

    Args:
        axis: The axis.
        where: Its coordinates.
        cubic: Cubic convolution instead of linear.
        a: Coefficient of the cubic kernel.
        antialias: Stretch the kernel when scaling down.
        exclude: Leave elements outside out and weigh the rest up; else the edge is repeated.

    Returns:
        float64 [after, before]; rows sum to 1.
    """
    squeeze = min(axis.scale, 1.0) if antialias else 1.0
    radius = int(np.ceil((2 if cubic else 1) / squeeze)) + 1
    made = np.zeros((axis.after, axis.before))
    base = np.floor(where).astype(np.int64)
    taps = base[:, None] + np.arange(-radius, radius + 1)[None, :]
    part = weight((taps - where[:, None]) * squeeze, cubic, a)
    if exclude:
        part = np.where((taps < 0) | (taps >= axis.before), 0.0, part)
    total = part.sum(1, keepdims=True)
    part = part / np.where(total == 0, 1.0, total)
    rows = np.repeat(np.arange(axis.after), taps.shape[1])
    np.add.at(made, (rows, np.clip(taps, 0, axis.before - 1).ravel()), part.ravel())
    return made
