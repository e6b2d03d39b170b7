"""Write a product with weights of a few bits as a float MatMul.

Before -> After: onnxruntime's `MatMulNBits(x, packed [N, blocks, bytes])` of 2, 4 or 8 bits -> `MatMul(x, w [K, N])`,
with an Add for its bias.
Why: the toolchain quantises float models only, and weights by itself.
Exactness: float rounding for the weights. Where onnxruntime rounds x to 8 bits (accuracy_level 4) that rounding goes;
the transform proves all other passes against the model that this one leaves, and measures how far it is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, Editor, attribute, input_at, remove_unused, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult
from boardlift_transform.quantised_values import read_constant

OPERATORS = frozenset({"MatMulNBits"})
BITS = (2, 4, 8)


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite each product whose weights are constants."""
    result = PassResult()
    nodes = [n for n in model.graph if n.op_type in OPERATORS and n.domain == "com.microsoft"]
    editor = Editor(model.graph, PASS.id)
    for node in nodes:
        made = _rewrite(node, editor, result)
        if made is not None:
            editor.replace(node.outputs[0], made)
            result.apply(node, node.op_type, "MatMul with float weights")
    if result.applied:
        remove_unused(model.graph)
    return result


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> ir.Value | None:
    packed, scales, x = read_constant(input_at(node, 1)), read_constant(input_at(node, 2)), node.inputs[0]
    zeros, order, bias = (input_at(node, i) for i in (3, 4, 5))
    bits, size = int(attribute(node, "bits", 4)), int(attribute(node, "block_size"))
    if packed is None or scales is None or x is None or (zeros is not None and read_constant(zeros) is None):
        result.skip(node, "its weights or scales are computed")
        return None
    if bits not in BITS or order is not None:
        result.skip(node, f"{bits} bits" if order is None else "its rows are reordered (g_idx)")
        return None
    depth, width = int(attribute(node, "K")), int(attribute(node, "N"))
    weight = dequantise_blocks(packed, scales, read_constant(zeros), bits, size, (width, depth))
    shape, dtype = shape_of(node.outputs[0]), ir.DataType.from_numpy(scales.dtype)
    real = editor.constant(weight.T, f"{node.name}_float")
    value = editor.node(node, "MatMul", [x, real], shape, hint=f"{node.name}_product", dtype=dtype)
    if bias is not None:
        value = editor.node(node, "Add", [value, bias], shape)
    return value


def unpack(array: Array, bits: int) -> Array:
    """Whole numbers of `bits` bits out of uint8, the lowest bits first, along the last axis."""
    places = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (array.astype(np.uint8)[..., None] >> places) & np.uint8((1 << bits) - 1)
    return np.asarray(parts.reshape(*array.shape[:-1], -1))


def dequantise_blocks(
    packed: Array, scales: Array, zeros: Array | None, bits: int, size: int, shape: tuple[int, int]
) -> Array:
    """Real weights `[N, K]` in the scales' type: `(q - zero) * scale`, one scale per block of `size` along K.

    Args:
        packed: uint8 `[N, blocks, size * bits / 8]`.
        scales: `[N, blocks]`, or flat.
        zeros: Packed uint8 like the weights, each row of N from a new byte on; or as the scales; None for the middle.
        bits: Of each weight.
        size: Weights per block.
        shape: (N, K); the last block may be cut.
    """
    width, depth = shape
    blocks = -(-depth // size)
    real = unpack(packed.reshape(width, blocks, -1), bits).astype(scales.dtype)
    if zeros is None:
        middle: Array = np.full((width, blocks), 1 << (bits - 1), scales.dtype)
    elif zeros.dtype == np.uint8:
        middle = unpack(zeros.reshape(width, -1), bits)[:, :blocks].astype(scales.dtype)
    else:
        middle = zeros.reshape(width, blocks)
    real = (real - middle[..., None]) * scales.reshape(width, blocks, 1)
    return np.asarray(real.reshape(width, -1)[:, :depth])


PASS = Pass(id="unpack-weights", summary="MatMulNBits -> MatMul with float weights", exactness=ROUNDING, apply=apply)
