"""QuantizeLinear, DequantizeLinear, QLinearMatMul: per-axis and blocked scales, other float types, 16-bit integers.

Per-tensor 8-bit float32 keeps the operator; everything else is written out: x / scale, Round (half to even), + zero
point, clamp, Cast.

Exactness: bit-exact.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.schemas import type_name
from boardlift_transform.opset.step import INTS, Step

T = TensorProto
_BYTES = (T.INT8, T.UINT8)


@adapter("QLinearMatMul", 21)
def float32_scales(step: Step) -> None:
    """float16 scales -> float32."""
    step.same([step.cast(n, T.FLOAT) if i in (1, 4, 6) else n for i, n in enumerate(step.node.input)])


def is_plain(step: Step, x: str, scale: str, quantised: int) -> bool:
    """Whether the operator of the target says the same: per tensor, from 13 on per axis."""
    tensor = step.shape(scale) == () or (step.target >= 13 and not step.attr("block_size", 0))
    return (
        quantised in (*_BYTES, T.INT32) and tensor and step.elem(x) in (T.FLOAT, *_BYTES, T.INT32)
        and step.elem(scale) == T.FLOAT
    )  # fmt: skip


def kept_axis(step: Step) -> int | None:
    """Axis where the target knows it."""
    return step.attr("axis", 1) if step.target >= 13 else None


def aligned(step: Step, value: str, x: str) -> str:
    """Scale or zero point in a shape that broadcasts against x: per tensor, per axis or per block."""
    shape = step.shape(value)
    if shape is None:
        raise NoForm(f"needs the rank of {value!r}", "give input_shapes")
    if len(shape) == 0 or (shape == (1,) and not step.attr("block_size", 0)):
        return value
    rank = step.rank(x)
    axis = step.attr("axis", 1) % rank
    block = step.attr("block_size", 0)
    if not block:
        dims = [1] * rank
        dims[axis] = -1
        return step.reshape(value, dims)
    size, blocks = step.static_shape_from(x, axis)[0], step.static_shape_from(value, axis)[0]
    index = np.minimum(np.arange(size) // block, blocks - 1)
    return step.op("Gather", [value, step.constant(index, np.int64)], axis=axis)


def quantised_type(step: Step) -> int:
    """Type of the result of QuantizeLinear."""
    return step.elem(step.x(2)) if step.x(2) else step.attr("output_dtype", 0) or T.UINT8


@adapter("QuantizeLinear", 13, 19, 21, 23)
def quantize(step: Step) -> None:
    """Keep the operator where version 10 does, else write it out."""
    x, scale, zero = step.x(0), step.x(1), step.x(2)
    to = quantised_type(step)
    if to not in INTS:
        raise NoForm(f"quantises to {type_name(to)}, a type that opset {step.target} lacks", "quantise to int8")
    if is_plain(step, x, scale, to) and (zero or to == T.UINT8):
        step.op("QuantizeLinear", [x, scale, zero], step.y(), at=step.target, axis=kept_axis(step))
        return
    kind = step.attr("precision", 0) or step.need_elem(scale)
    work = T.FLOAT if kind == T.FLOAT16 else kind
    ratio = step.op("Div", [step.cast(x, work), step.cast(aligned(step, scale, x), work)])
    near = step.op("Round", [ratio])
    if zero:
        near = step.op("Add", [near, step.cast(aligned(step, zero, x), work)])
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(to))
    low, high = step.constant(float(limits.min), work), step.constant(float(limits.max), work)
    step.op("Cast", [step.op("Min", [step.op("Max", [near, low]), high])], step.y(), to=to)


@adapter("DequantizeLinear", 13, 19, 21, 23)
def dequantize(step: Step) -> None:
    """Keep the operator where version 10 does, else (x - zero) * scale."""
    x, scale, zero = step.x(0), step.x(1), step.x(2)
    source = step.need_elem(x)
    to = step.attr("output_dtype", 0) or step.need_elem(scale)
    if source not in INTS:
        raise NoForm(f"reads {type_name(source)}, a type that opset {step.target} lacks", "quantise to int8")
    if is_plain(step, x, scale, source) and to == T.FLOAT:
        step.op("DequantizeLinear", [x, scale, zero], step.y(), at=step.target, axis=kept_axis(step))
        return
    value = step.cast(x, T.INT32)
    if zero:
        value = step.op("Sub", [value, step.cast(aligned(step, zero, x), T.INT32)])
    work = T.FLOAT if to == T.FLOAT16 else to
    made = step.op(
        "Mul", [step.cast(value, work), step.cast(aligned(step, scale, x), work)], step.y() if work == to else ""
    )
    if work != to:
        step.cast(made, to, step.y())
