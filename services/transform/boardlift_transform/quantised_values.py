"""Arithmetic of quantised tensors on constants: what DequantizeLinear and QuantizeLinear compute.

Source of the formulas: the ONNX operator definitions, `y = (x - zero_point) * scale` and
`y = saturate(round_half_even(x / scale) + zero_point)`; to float8 and float4 `y = saturate(nearest(x / scale))`.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array

FLOATS = {
    ir.DataType.FLOAT8E4M3FN: (-448, 448),
    ir.DataType.FLOAT8E4M3FNUZ: (-240, 240),
    ir.DataType.FLOAT8E5M2: (-57344, 57344),
    ir.DataType.FLOAT8E5M2FNUZ: (-57344, 57344),
    ir.DataType.FLOAT4E2M1: (-6, 6),
}
"""Smallest and largest finite number of each narrow float that QuantizeLinear makes; steps grow with the value."""
RANGES = {
    **FLOATS,
    ir.DataType.INT4: (-8, 7),
    ir.DataType.UINT4: (0, 15),
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT16: (0, 65535),
}
"""Smallest and largest number of each type that QuantizeLinear makes."""


def read_constant(value: ir.Value | None) -> Array | None:
    """Contents of an initialiser or of a Constant node, None for anything computed, fed or absent."""
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else np.asarray(tensor.numpy())


def along_axis(parameter: Array, rank: int, axis: int) -> Array:
    """A scale or zero point shaped to broadcast: one number as a scalar, `[C]` along `axis` of a tensor of that rank.

    Raises:
        ValueError: For a shape that is neither.
    """
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1 or not -rank <= axis < rank:
        raise ValueError(f"{list(parameter.shape)} along axis {axis} of rank {rank}")
    dims = [1] * rank
    dims[axis] = -1
    return parameter.reshape(dims)


def dequantise(array: Array, scale: Array, zero: Array | None, axis: int = 1, block: int = 0) -> Array:
    """Real values of a quantised tensor, in the scale's type.

    Args:
        array: Whole numbers of any shape.
        scale: One number, `[C]` along `axis`, or blocks of `block` entries along `axis`.
        zero: The same shape as `scale`; None for zeros.
        axis: Axis of the scales.
        block: Entries per scale along `axis`; 0 for none.

    Raises:
        ValueError: When the shapes do not fit.
    """
    zeros = np.zeros_like(scale) if zero is None else zero.astype(scale.dtype)
    if block and scale.ndim == array.ndim:
        repeat = [slice(None)] * array.ndim
        repeat[axis] = slice(0, array.shape[axis])
        scales, zeros = (np.repeat(p, block, axis)[tuple(repeat)] for p in (scale, zeros))
    else:
        scales, zeros = along_axis(scale, array.ndim, axis), along_axis(zeros, array.ndim, axis)
    return np.asarray((array.astype(scale.dtype) - zeros) * scales, scale.dtype)


def fake_quantise(array: Array, scale: Array, zero: Array, kind: ir.DataType, axis: int = 1) -> Array:
    """Real values after QuantizeLinear to `kind` and DequantizeLinear, in the scale's type.

    Raises:
        ValueError: When the shapes do not fit.
    """
    scales, zeros = along_axis(scale, array.ndim, axis), along_axis(zero.astype(scale.dtype), array.ndim, axis)
    if kind in FLOATS:
        whole = np.clip(array / scales, *RANGES[kind]).astype(kind.numpy()).astype(scale.dtype)
    else:
        whole = np.clip(np.rint(array / scales) + zeros, *RANGES[kind])
    return np.asarray((whole - zeros) * scales, scale.dtype)
