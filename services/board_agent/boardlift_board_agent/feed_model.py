"""One sample of the user's data -> the bytes of one compiled input. Pure.

Float inputs pass through. Integer inputs (their Quantize node was removed) are quantised with the reported scale.
Pictures: uint8 of the exact size passes through; `[3, H, W]` or `[H, W, 3]` numbers 0 to 255 are taken for RGB and
converted to full-range NV12 by BT.601, chroma averaged over 2x2.
"""

from __future__ import annotations

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
    if "NV12" not in spec.type:
        raise InvalidInputError(
            f"Input {spec.name} takes {spec.type}; the agent feeds NV12 and tensors.",
            reason="PICTURE_UNSUPPORTED",
            remedy="Compile with input_type_rt nv12 or featuremap.",
            metadata={"input": spec.name},
        )
    if sample.dtype == np.uint8 and sample.size == height * width * 3 // 2:
        return np.ascontiguousarray(sample).tobytes()
    image = sample.reshape(sample.shape[-3:]) if sample.ndim >= 3 else sample
    if image.shape == (3, height, width):
        image = np.moveaxis(image, 0, -1)
    if image.shape != (height, width, 3):
        raise InvalidInputError(
            f"A sample of {spec.name} has shape {list(sample.shape)}; the picture is {width}x{height}.",
            reason="SAMPLE_SHAPE_WRONG",
            remedy="Send RGB pictures [3, H, W] or [H, W, 3] from 0 to 255, or flat NV12 bytes.",
            metadata={"input": spec.name},
        )
    return rgb_to_nv12(image)


def rgb_to_nv12(rgb: Array) -> bytes:
    """RGB [H, W, 3], 0 to 255 -> NV12 bytes without row padding, full range."""
    red, green, blue = (rgb[..., k].astype(np.float64) for k in range(3))
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    chroma = np.stack([(blue - luma) / 1.772 + 128, (red - luma) / 1.402 + 128], axis=-1)
    exact = np.clip(np.rint(chroma), 0, 255).astype(np.uint16)
    height, width = luma.shape
    pooled = exact.reshape(height // 2, 2, width // 2, 2, 2).sum(axis=(1, 3))
    return pack_nv12(np.clip(np.rint(luma), 0, 255).astype(np.uint8), ((pooled + 2) // 4).astype(np.uint8), align=1)
