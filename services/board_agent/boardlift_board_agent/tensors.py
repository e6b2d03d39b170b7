"""Memory <-> arrays by stride and aligned shape; dequantisation; NV12. Pure.

Rules (X5): an element's place is the sum of index times stride, in bytes; where no stride is given the aligned shape
decides; aligned = valid means dense. S series: no aligned shape, stride always, -1 where the caller decides. Copying
row after row without the padding (a plain memcpy) is the classic mistake; `find_plain_copy` recognises its traces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from boardlift.errors import InvalidInputError
from numpy.typing import NDArray

from boardlift_board_agent.tensor_spec import MAX_BYTES, TensorSpec

Array = NDArray[Any]


def strides_of(spec: TensorSpec) -> tuple[int, ...]:
    """Bytes per dimension, worked out when the runtime leaves them open.

    Args:
        spec: the tensor.

    Returns:
        One positive stride per dimension of the valid shape.

    Raises:
        InvalidInputError: TENSOR_LAYOUT_INVALID when the report contradicts itself.
    """
    item = spec.dtype.itemsize
    if len(spec.stride) == len(spec.valid) and spec.stride and all(s > 0 for s in spec.stride):
        strides = spec.stride
    else:
        shape = spec.aligned if len(spec.aligned) == len(spec.valid) else spec.valid
        known = spec.stride if len(spec.stride) == len(spec.valid) else (0,) * len(spec.valid)
        strides, step = (), item
        for extent, given in zip(reversed(shape), reversed(known), strict=True):
            step = given if given > 0 else step
            strides = (step, *strides)
            step *= extent
    _check(spec, strides)
    return strides


def _check(spec: TensorSpec, strides: tuple[int, ...]) -> None:
    last = sum((extent - 1) * stride for extent, stride in zip(spec.valid, strides, strict=True)) + spec.dtype.itemsize
    if min(spec.valid, default=1) < 1 or not 0 < spec.size_bytes <= MAX_BYTES or last > spec.size_bytes:
        raise InvalidInputError(
            f"Tensor {spec.name}: shape {spec.valid} with stride {strides} does not fit in {spec.size_bytes} bytes.",
            reason="TENSOR_LAYOUT_INVALID",
            remedy="The model or the tool's report is damaged; compile again.",
            metadata={"tensor": spec.name},
        )


def unpack(memory: bytes, spec: TensorSpec) -> Array:
    """Reads the valid elements out of padded memory.

    Args:
        memory: `spec.size_bytes` bytes, or exactly the dense size (a tool that already removed the padding).
        spec: the tensor; not a picture.

    Returns:
        Array in valid shape and native type, contiguous.

    Raises:
        InvalidInputError: TENSOR_SIZE_WRONG.
    """
    dense = int(np.prod(spec.valid, dtype=np.int64)) * spec.dtype.itemsize
    if len(memory) == dense:
        return np.array(np.frombuffer(memory, spec.dtype).reshape(spec.valid))
    if len(memory) != spec.size_bytes:
        raise _size_error(spec, len(memory))
    return np.array(np.ndarray(spec.valid, spec.dtype, memory, strides=strides_of(spec)))


def pack(values: Array, spec: TensorSpec) -> bytes:
    """Lays an array out as the board's memory holds it; padding is zero.

    Args:
        values: valid shape, native type.
        spec: the tensor; not a picture.

    Returns:
        `spec.size_bytes` bytes.

    Raises:
        InvalidInputError: TENSOR_SHAPE_WRONG or TENSOR_DTYPE_WRONG.
    """
    if values.shape != spec.valid:
        raise InvalidInputError(
            f"Tensor {spec.name} has shape {spec.valid}, the values {values.shape}.",
            reason="TENSOR_SHAPE_WRONG",
            remedy="Give the samples in the compiled model's input shape.",
            metadata={"tensor": spec.name},
        )
    if values.dtype != spec.dtype:
        raise InvalidInputError(
            f"Tensor {spec.name} has type {spec.dtype}, the values {values.dtype}.",
            reason="TENSOR_DTYPE_WRONG",
            remedy=f"Convert the values to {spec.dtype} first.",
            metadata={"tensor": spec.name},
        )
    memory = np.zeros(spec.size_bytes, np.uint8)
    np.ndarray(spec.valid, spec.dtype, memory.data, strides=strides_of(spec))[...] = values
    return memory.tobytes()


def read_plainly(memory: bytes, spec: TensorSpec) -> Array:
    """What code sees that ignores the stride: the first elements, one after the other."""
    count = int(np.prod(spec.valid, dtype=np.int64))
    return np.frombuffer(memory, spec.dtype, count=count).reshape(spec.valid)


def scale_shape(spec: TensorSpec, rank: int) -> Array:
    """The scales, shaped to multiply an array of this rank.

    Raises:
        InvalidInputError: TENSOR_SCALE_WRONG.
    """
    scale = np.asarray(spec.scale, np.float32)
    if scale.size == 1:
        return scale.reshape(())
    if not 0 <= spec.axis < rank or scale.size != spec.valid[spec.axis]:
        raise InvalidInputError(
            f"Tensor {spec.name} has {scale.size} scales on axis {spec.axis} of shape {spec.valid}.",
            reason="TENSOR_SCALE_WRONG",
            remedy="Compile the model again: its description contradicts itself.",
            metadata={"tensor": spec.name},
        )
    shape = [1] * rank
    shape[spec.axis] = scale.size
    return scale.reshape(shape)


def dequantize(values: Array, spec: TensorSpec) -> NDArray[np.float32]:
    """Native values -> float32: value * scale[channel]; floats pass through."""
    if not spec.scale:
        return values.astype(np.float32)
    return np.asarray(values.astype(np.float32) * scale_shape(spec, values.ndim), np.float32)


def quantize(values: Array, spec: TensorSpec) -> Array:
    """Float samples -> native type of an input whose Quantize node was removed: clip(round-half-even(x / scale))."""
    if spec.dtype.kind == "f":
        return values.astype(spec.dtype)
    if not spec.scale:
        return values.astype(spec.dtype)
    info = np.iinfo(spec.dtype.name)
    scaled = np.rint(values.astype(np.float32) / scale_shape(spec, values.ndim))
    return np.clip(scaled, info.min, info.max).astype(spec.dtype)


def find_plain_copy(memory: bytes, spec: TensorSpec) -> bool:
    """Recognises memory that was written row after row although the stride says padded.

    The trace: bytes that must be padding hold data, while the end of the memory, which must hold data, is zero.

    Args:
        memory: `spec.size_bytes` bytes.
        spec: the tensor.

    Returns:
        True when the padding is not empty and everything behind the dense length is.
    """
    if not spec.padded or len(memory) != spec.size_bytes:
        return False
    used = np.zeros(spec.size_bytes, np.uint8)
    marks = np.ndarray((*spec.valid, spec.dtype.itemsize), np.uint8, used.data, strides=(*strides_of(spec), 1))
    marks[...] = 1
    data = np.frombuffer(memory, np.uint8)
    dense = int(np.prod(spec.valid, dtype=np.int64)) * spec.dtype.itemsize
    return bool(data[used == 0].any()) and not data[dense:].any()


def pack_nv12(luma: NDArray[np.uint8], chroma: NDArray[np.uint8], align: int = 16) -> bytes:
    """Y plane, then interleaved UV, rows padded to a multiple of `align` bytes.

    Args:
        luma: uint8 [H, W], both even.
        chroma: uint8 [H/2, W/2, 2], U before V.
        align: row alignment in bytes; 1 for none.

    Raises:
        InvalidInputError: NV12_SIZE_ODD or NV12_SHAPE_WRONG.
    """
    height, width = luma.shape
    if height % 2 or width % 2:
        raise InvalidInputError(
            f"NV12 needs even sizes, not {width}x{height}.", reason="NV12_SIZE_ODD", remedy="Crop or pad by one pixel."
        )
    if chroma.shape != (height // 2, width // 2, 2):
        raise InvalidInputError(
            "The chroma plane must be [H/2, W/2, 2].",
            reason="NV12_SHAPE_WRONG",
            remedy="Give Y as [H, W] and UV as [H/2, W/2, 2].",
        )
    rows = np.concatenate([luma, chroma.reshape(height // 2, width)])
    return np.pad(rows, [(0, 0), (0, -width % align)]).tobytes()


def unpack_nv12(memory: bytes, width: int, height: int, align: int = 16) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The reverse of `pack_nv12`: luma [H, W] and chroma [H/2, W/2, 2]."""
    pitch = width + -width % align
    rows = np.frombuffer(memory, np.uint8).reshape(height * 3 // 2, pitch)[:, :width]
    return rows[:height], rows[height:].reshape(height // 2, width // 2, 2)


def _size_error(spec: TensorSpec, size: int) -> InvalidInputError:
    return InvalidInputError(
        f"Tensor {spec.name} needs {spec.size_bytes} bytes, there are {size}.",
        reason="TENSOR_SIZE_WRONG",
        remedy="The dump is cut short (disk full?) or belongs to another model.",
        metadata={"tensor": spec.name, "size_bytes": str(size)},
    )
