"""One sample of the user's data -> the bytes of one compiled input. Pure.

Float inputs pass through. Integer inputs (their Quantize node was removed) are quantised with the reported scale.
Pictures: uint8 of the exact size passes through; `[C, H, W]` or `[H, W, C]` numbers 0 to 255 are taken for the colours
that the tensor names (RGB by default) and converted to what the model takes: NV12 (BT.601, chroma averaged over 2x2),
RGB, BGR, YUV444 or Y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from boardlift.errors import InvalidInputError
from numpy.typing import NDArray

from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_board_agent.tensors import pack, pack_nv12, quantize

Array = NDArray[Any]


def input_bytes(sample: Array, spec: TensorSpec) -> bytes:
    """Bytes for `hrt_model_exec infer --input_file`.

    Args:
        sample: one sample; dimensions of 1 may differ from the tensor's shape.
        spec: the compiled model's input.

    Returns:
        Padded memory for tensors, the valid picture for NV12.

    Raises:
        InvalidInputError: SAMPLE_SHAPE_WRONG, or PICTURE_UNSUPPORTED.
    """
    if spec.image:
        return _picture(sample, spec)
    if sample.size != int(np.prod(spec.valid, dtype=np.int64)) or not _same_order(sample.shape, spec.valid):
        raise InvalidInputError(
            f"A sample of {spec.name} has shape {list(sample.shape)}, the compiled model takes {list(spec.valid)}.",
            reason="SAMPLE_SHAPE_WRONG",
            remedy="Send the samples in the layout the compiled model takes (NCHW and NHWC are not the same).",
            metadata={"input": spec.name},
        )
    return pack(quantize(sample.reshape(spec.valid), spec), spec)


def _same_order(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return [d for d in left if d != 1] == [d for d in right if d != 1]


def _picture(sample: Array, spec: TensorSpec) -> bytes:
    nhwc = spec.layout.endswith("NHWC")
    height, width = (spec.valid[1], spec.valid[2]) if nhwc else (spec.valid[2], spec.valid[3])
    kind = spec.type.rpartition("_TYPE_")[2].removesuffix("_SEPARATE")
    valid_bytes = height * width * 3 // 2 if kind == "NV12" else int(np.prod(spec.valid))
    if sample.dtype == np.uint8 and sample.size == valid_bytes:
        return np.ascontiguousarray(sample).tobytes()
    image = sample.reshape(sample.shape[-3:]) if sample.ndim >= 3 else sample
    channels = 1 if spec.colour == "gray" else 3
    if image.shape == (channels, height, width):
        image = np.moveaxis(image, 0, -1)
    if image.shape != (height, width, channels):
        raise InvalidInputError(
            f"A sample of {spec.name} has shape {list(sample.shape)}; the picture is {width}x{height}.",
            reason="SAMPLE_SHAPE_WRONG",
            remedy="Send pictures [C, H, W] or [H, W, C] from 0 to 255, or the picture's bytes as uint8.",
            metadata={"input": spec.name},
        )
    image = np.clip(np.rint(image.astype(np.float64)), 0, 255)  # a camera gives whole numbers; so do the simulators
    if spec.colour == "bgr":
        image = image[..., ::-1]
    if kind == "NV12" and channels == 3:
        return yuv_to_nv12(image if spec.colour == "yuv444" else _yuv(image, spec.video_range))
    if kind not in _FROM_RGB:
        raise InvalidInputError(
            f"Input {spec.name} takes {spec.type}; the agent knows NV12, RGB, BGR, YUV444, Y and tensors.",
            reason="PICTURE_UNSUPPORTED",
            remedy="Compile with input_type_rt nv12 or featuremap.",
            metadata={"input": spec.name},
        )
    ready = spec.colour == "yuv444" or channels == 1
    pixels = np.clip(np.rint(image if ready else _FROM_RGB[kind](image)), 0, 255).astype(np.uint8)
    return np.ascontiguousarray(pixels if nhwc else np.moveaxis(pixels, -1, 0)).tobytes()


def _yuv(rgb: NDArray[np.float64], video_range: bool = False) -> NDArray[np.float64]:
    """BT.601, [H, W, 3], of the full range or of 16 to 235.

    Term by term as the compiler service does it: one in a thousand colours lies halfway between two numbers, where a
    product of matrices rounds otherwise, and one pixel off by one is a board that does not match its simulation.
    """
    red, green, blue = (rgb[..., k] for k in range(3))
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    first, second = (blue - luma) / 1.772, (red - luma) / 1.402
    if video_range:
        luma, first, second = 16 + luma * 219 / 255, first * 224 / 255, second * 224 / 255
    return np.stack([luma, first + 128, second + 128], axis=-1)


_FROM_RGB: Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "RGB": lambda rgb: rgb,
    "BGR": lambda rgb: rgb[..., ::-1],
    "YUV444": _yuv,
    "Y": lambda rgb: _yuv(rgb)[..., :1],
}


def rgb_to_nv12(rgb: Array) -> bytes:
    """RGB [H, W, 3], 0 to 255 -> NV12 bytes without row padding, full range."""
    return yuv_to_nv12(_yuv(rgb.astype(np.float64)))


def yuv_to_nv12(yuv: NDArray[np.float64]) -> bytes:
    """YUV [H, W, 3] -> NV12 bytes without row padding; rounded first, then the chroma is averaged."""
    height, width = yuv.shape[:2]
    exact = np.clip(np.rint(yuv[..., 1:]), 0, 255).astype(np.uint16)
    pooled = exact.reshape(height // 2, 2, width // 2, 2, 2).sum(axis=(1, 3))
    luma = np.clip(np.rint(yuv[..., 0]), 0, 255).astype(np.uint8)
    return pack_nv12(luma, ((pooled + 2) // 4).astype(np.uint8), align=1)
