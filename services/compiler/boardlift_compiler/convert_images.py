"""Turn samples in the model's training form into what the quantised model and the simulator take; pure.

A featuremap passes through. An image model is fed by the board with another form than it was trained with: nv12 or
yuv444 for an rgb model, or the channels swapped. The quantised model takes pixels minus 128 as int8, NHWC for pyramid
inputs; the simulator takes nv12 as one file of Y then interleaved UV.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boardlift_compiler.read_model import TensorInfo
from boardlift_compiler.spec import InputSpec

Array = npt.NDArray[np.generic]
Pixels = npt.NDArray[np.uint8]


def rgb_to_yuv444(rgb: npt.NDArray[np.generic], video_range: bool = False) -> Pixels:
    """Convert ``[..., 3]`` RGB 0 to 255 to YUV by BT.601.

    Args:
        rgb: Pixels, channel last.
        video_range: True for 16 to 235 (``bt601_video``), False for full range (``regular``).
    """
    r, g, b = (rgb[..., k].astype(np.float64) for k in range(3))
    y = 0.299 * r + 0.587 * g + 0.114 * b
    u = (b - y) / 1.772
    v = (r - y) / 1.402
    if video_range:
        y, u, v = 16 + y * 219 / 255, u * 224 / 255, v * 224 / 255
    stacked = np.stack([y, u + 128, v + 128], axis=-1)
    return np.clip(np.rint(stacked), 0, 255).astype(np.uint8)


def yuv444_to_nv12(yuv: Pixels) -> Pixels:
    """Subsample ``[H, W, 3]`` (even H and W) to one flat nv12 buffer of H*W*3/2 bytes; chroma is averaged 2x2."""
    height, width = yuv.shape[:2]
    chroma = yuv[..., 1:].astype(np.uint16).reshape(height // 2, 2, width // 2, 2, 2).sum(axis=(1, 3))
    return np.concatenate([yuv[..., 0].ravel(), ((chroma + 2) // 4).astype(np.uint8).ravel()])


def nv12_to_yuv444(buffer: Pixels, height: int, width: int) -> Pixels:
    """Expand an nv12 buffer to ``[H, W, 3]``; each chroma pair serves its 2x2 pixels, as the hardware does."""
    y = buffer[: height * width].reshape(height, width)
    uv = buffer[height * width :].reshape(height // 2, width // 2, 2)
    return np.dstack([y, uv.repeat(2, axis=0).repeat(2, axis=1)])


def to_pixels(sample: Array, spec: InputSpec) -> Pixels:
    """Return one sample ``[1, ...]`` or ``[...]`` of an image input as ``[H, W, C]`` uint8 in training colours."""
    image = sample.reshape(sample.shape[-3:])
    if spec.layout_train == "NCHW":
        image = np.moveaxis(image, 0, -1)
    return np.clip(np.rint(image.astype(np.float64)), 0, 255).astype(np.uint8)


def to_runtime_pixels(sample: Array, spec: InputSpec) -> Pixels:
    """Return one sample as the board's camera gives it, ``[H, W, C]`` uint8 (nv12 expanded to yuv444)."""
    image = to_pixels(sample, spec)
    if spec.type_train == spec.type_rt or spec.type_train == "yuv444":
        yuv = image
    elif spec.type_rt in ("rgb", "bgr"):
        return np.ascontiguousarray(image[..., ::-1])
    else:
        rgb = image[..., ::-1] if spec.type_train == "bgr" else image
        yuv = rgb_to_yuv444(rgb, spec.space_and_range == "bt601_video")
    if spec.type_rt == "nv12":
        return nv12_to_yuv444(yuv444_to_nv12(yuv), *yuv.shape[:2])
    return yuv


def to_quantized_input(samples: Array, spec: InputSpec, tensor: TensorInfo) -> Array:
    """Return all samples in the form the quantised model's input takes.

    Args:
        samples: ``[N, ...]`` in training form.
        spec: The input's spec.
        tensor: The quantised model's input: its type and layout decide.

    Returns:
        float32 for a featuremap; int8 (pixel minus 128) in the model's layout for an image.
    """
    if not spec.is_image:
        return samples.astype(np.float32) if tensor.dtype == "float32" else samples
    shape = tuple(d for d in tensor.shape if isinstance(d, int))
    images = np.stack([to_runtime_pixels(s, spec) for s in samples])
    shifted = (images.astype(np.int16) - 128).astype(np.int8)
    if len(shape) == 4 and shape[1] == images.shape[-1] and shape[-1] != images.shape[-1]:
        shifted = np.moveaxis(shifted, -1, 1)
    return np.ascontiguousarray(shifted if tensor.dtype != "float32" else shifted.astype(np.float32))


def to_simulator_input(sample: Array, spec: InputSpec) -> tuple[Array, bool] | None:
    """Return what the simulator takes for a graph input, with True for nv12; None when the tensor goes in as it is."""
    if spec.type_rt == "nv12":
        return yuv444_to_nv12(to_runtime_pixels(sample, spec)), True
    if spec.type_rt == "gray":
        return to_pixels(sample, spec)[..., 0].ravel(), True
    return None
