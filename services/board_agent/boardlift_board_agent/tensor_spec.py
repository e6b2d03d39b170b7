"""What the runtime reports about one tensor: shapes, padding, stride, type, scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from boardlift.errors import InvalidInputError

_NUMPY = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "S8": np.int8,
    "U8": np.uint8,
    "S16": np.int16,
    "U16": np.uint16,
    "S32": np.int32,
    "U32": np.uint32,
    "S64": np.int64,
    "U64": np.uint64,
    "BOOL8": np.uint8,
}
MAX_BYTES = 1 << 31
"""Larger tensors are taken for a damaged report."""


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a compiled model."""

    name: str
    """Name inside the compiled model."""
    input: bool
    """True for an input."""
    valid: tuple[int, ...]
    """Shape without padding."""
    type: str
    """Runtime's word, for example `HB_DNN_TENSOR_TYPE_S32` or `HB_DNN_IMG_TYPE_NV12`."""
    size_bytes: int
    """Bytes of memory, padding included (`aligned byte size`)."""
    aligned: tuple[int, ...] = ()
    """Shape with padding; empty where the runtime has none (S series)."""
    stride: tuple[int, ...] = ()
    """Bytes per dimension; all 0 for X5 pictures, -1 where the caller decides (S series pictures)."""
    source: str = ""
    """`HB_DNN_INPUT_FROM_DDR|PYRAMID|RESIZER`; empty for outputs and on the S series."""
    layout: str = ""
    """`HB_DNN_LAYOUT_NCHW|NHWC|NONE`; empty on the S series."""
    quantization: str = "NONE"
    """`NONE`, `SHIFT` or `SCALE`."""
    scale: tuple[float, ...] = ()
    """One per tensor or one per channel; empty without SCALE."""
    axis: int = 0
    """Axis of the scales."""
    colour: str = "rgb"
    """Of a picture: what its samples hold, `rgb`, `bgr`, `yuv444` or `gray`."""
    video_range: bool = False
    """Of a picture: the model takes YUV of 16 to 235 (`bt601_video`), not of the full range."""

    @property
    def image(self) -> bool:
        """True for a picture input."""
        return "_IMG_TYPE_" in self.type

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Numpy type of one element.

        Raises:
            InvalidInputError: TENSOR_TYPE_UNKNOWN.
        """
        short = self.type.rpartition("_TYPE_")[2]
        if self.image:
            return np.dtype(np.uint8)
        if short not in _NUMPY:
            raise InvalidInputError(
                f"Tensor {self.name} has the unknown type {self.type}.",
                reason="TENSOR_TYPE_UNKNOWN",
                remedy="Report this type; the agent knows integer and float tensors.",
                metadata={"tensor": self.name, "type": self.type},
            )
        return np.dtype(_NUMPY[short])

    @property
    def padded(self) -> bool:
        """True when the memory holds more than the valid elements."""
        if self.image:
            return False
        return self.size_bytes != int(np.prod(self.valid, dtype=np.int64)) * self.dtype.itemsize
