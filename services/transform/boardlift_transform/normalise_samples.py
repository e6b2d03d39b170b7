"""Turn raw pixels into what the model as given is fed, where the compiled model will normalise them by itself.

The compiler and the board take raw pixels for an input with mean and scale. The truth is the model as given on what it
was trained with, so the proof and the reference outputs need the same samples after ``(pixel - mean) * scale``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boardlift_transform.refusal import Refusal

Array = npt.NDArray[Any]

_CHANNEL_AXIS = {"": -3, "NCHW": -3, "NHWC": -1}


@dataclass(frozen=True)
class Normalisation:
    """Mean and scale of one input."""

    name: str
    """Input of the model."""
    mean: tuple[float, ...] = ()
    """Subtracted, in units of the samples: one number or one per channel; empty is 0."""
    scale: tuple[float, ...] = ()
    """Factor after the mean: one number or one per channel; empty is 1."""
    layout: str = ""
    """NCHW or NHWC; empty is NCHW."""


def normalise_samples(arrays: Mapping[str, Array], wanted: Iterable[Normalisation]) -> dict[str, Array]:
    """Return the samples as the model as given is fed.

    Args:
        arrays: Samples ``[N, ..., C, H, W]`` or ``[N, ..., H, W, C]`` by input name; raw pixels where normalised.
        wanted: What the compiled model will do by itself.

    Returns:
        float32 arrays of the same shapes for the inputs in `wanted`, the others as they are.

    Raises:
        Refusal: `INPUT_NOT_FOUND`, or `NORM_TYPE_INVALID` when the numbers do not fit the input.
    """
    fed = dict(arrays)
    for item in wanted:
        if item.name not in fed:
            text = f"mean and scale name no input: {item.name}"
            known = f"inputs are {', '.join(sorted(arrays))}"
            raise Refusal("INPUT_NOT_FOUND", text, remedy=known, metadata={"input": item.name})
        fed[item.name] = _normalise(fed[item.name], item)
    return fed


def _normalise(pixels: Array, item: Normalisation) -> Array:
    if item.layout not in _CHANNEL_AXIS or pixels.ndim < 4 or pixels.dtype.kind != "f":
        text = f"{item.name} is no picture of float32 [C, H, W] or [H, W, C], and takes no mean and no scale"
        remedy = "leave mean and scale out, or export the model with a float input and no normalisation of its own"
        raise Refusal("NORM_TYPE_INVALID", text, remedy=remedy, metadata={"input": item.name})
    axis = _CHANNEL_AXIS[item.layout]
    channels = pixels.shape[axis]
    shape = [1] * pixels.ndim
    shape[axis] = -1
    numbers = [np.asarray(item.mean or (0.0,), np.float64), np.asarray(item.scale or (1.0,), np.float64)]
    if any(len(values) not in (1, channels) for values in numbers):
        text = f"mean and scale of {item.name} need one number or {channels}, one per channel"
        remedy = f"give {channels} numbers each, and the layout that the model has"
        raise Refusal("NORM_TYPE_INVALID", text, remedy=remedy, metadata={"input": item.name, "channels": channels})
    mean, scale = (values.reshape(shape).astype(np.float32) for values in numbers)
    normalised: Array = (pixels.astype(np.float32) - mean) * scale
    return normalised
