"""What a user asks for: variants and the form of their inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InputFormat:
    """How one input was trained and how the board feeds it; the defaults are those of a plain tensor."""

    name: str
    """Input of the model."""
    type_train: str = ""
    """rgb, bgr, yuv444, gray or featuremap."""
    type_rt: str = ""
    """rgb, bgr, yuv444, nv12, gray or featuremap."""
    layout_train: str = ""
    """NCHW or NHWC."""
    layout_rt: str = ""
    """NCHW or NHWC; empty for nv12."""
    norm_type: str = ""
    """no_preprocess, data_mean, data_scale or data_mean_and_scale."""
    mean: tuple[float, ...] = ()
    """Mean per channel in units of the raw data."""
    scale: tuple[float, ...] = ()
    """Scale per channel, applied after the mean."""
    shape: tuple[int, ...] = ()
    """Fixed shape; empty takes the model's."""
    space_and_range: str = ""
    """regular, or bt601_video for nv12 whose values run from 16 to 235."""
    source: str = ""
    """ddr, pyramid or resizer; empty lets the tool choose."""


@dataclass(frozen=True)
class Variant:
    """One way to compile a model."""

    name: str
    """Name, unique in the job."""
    preset: str = ""
    """int8, int16, mixed, auto or fast-perf; empty takes the name when that is a preset."""
    calibration: str = ""
    """default, mix, kl, max or skip."""
    percentile: float = 0.0
    """Percentile for max, 0.5 to 1; 0 leaves it to the tool."""
    per_channel: bool = False
    """Quantise per channel."""
    level: str = ""
    """O0, O1, O2 or O3; empty lets the purpose choose."""
    purpose: str = ""
    """preview, search or release."""
    int16: tuple[str, ...] = ()
    """Nodes to run in int16: their inputs are, as in the plans that `boardlift sensitivity` suggests."""
    cpu: tuple[str, ...] = ()
    """Nodes to run on the CPU."""
    inputs: tuple[InputFormat, ...] = ()
    """Inputs that are not plain tensors."""
