"""Where whole numbers of a quantised model come from and who reads them, through nodes that only move values."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, attribute, input_at
from boardlift_transform.quantised_values import RANGES, read_constant

DOMAINS = ("", "ai.onnx", "com.microsoft")
QUANTISE, DEQUANTISE = "QuantizeLinear", "DequantizeLinear"
_MOVES = frozenset(
    "Reshape Transpose Flatten Squeeze Unsqueeze Slice Gather MaxPool Split Expand Tile Identity DepthToSpace"
    " SpaceToDepth".split()
)
"""Their results lie within the range of what they read."""
_CARRIERS = _MOVES | {"Resize"}
_ORDERED = frozenset({"ArgMax", "ArgMin"})


def scale_of(node: ir.Node) -> tuple[Array, Array | None] | None:
    """Scale and zero point of a (de)quantiser where both are constant; None when one is computed."""
    scale, zero = read_constant(input_at(node, 1)), read_constant(input_at(node, 2))
    if scale is None or (zero is None and input_at(node, 2) is not None):
        return None
    return scale, zero


def kind_of(node: ir.Node) -> ir.DataType:
    """Type of the whole numbers, also where nothing has inferred it and the zero point is a node."""
    zero, told = read_constant(input_at(node, 2)), attribute(node, "output_dtype", 0)
    if node.outputs[0].dtype is not None:
        return node.outputs[0].dtype
    if zero is not None:
        return ir.DataType.from_numpy(zero.dtype)
    return ir.DataType(told) if told else ir.DataType.UINT8


def has_scale(node: ir.Node, scale: Array, zero: Array | None) -> bool:
    """True when the (de)quantiser has this scale and zero point."""
    other = scale_of(node)
    if other is None or not np.array_equal(other[0], scale):
        return False
    return bool(np.all((0 if other[1] is None else other[1]) == (0 if zero is None else zero)))


def ends_of(whole: ir.Value) -> list[ir.Node] | None:
    """The dequantisers that read a quantised value, through moves; None when anything else does."""
    found: list[ir.Node] = []
    if whole.is_graph_output():
        return None
    for use in whole.uses():
        node = use.node
        if use.idx != 0 or node.domain not in DOMAINS:
            return None
        if node.op_type == DEQUANTISE:
            found.append(node)
        elif node.op_type in _CARRIERS:
            for output in node.outputs:
                inner = ends_of(output)
                if inner is None:
                    return None
                found += inner
        elif node.op_type not in _ORDERED:
            return None
    return found


def source_of(value: ir.Value) -> ir.Value:
    """Where a value comes from before the moves."""
    producer = value.producer()
    while producer is not None and producer.op_type in _MOVES and producer.inputs[0] is not None:
        value = producer.inputs[0]
        producer = value.producer()
    return value


def carry(whole: ir.Value, real: ir.Value) -> None:
    """Let the readers of `whole` read `real`, and moves behind it carry the type of `real`."""
    whole.replace_all_uses_with(real)
    pending = [real]
    while pending:
        for use in pending.pop().uses():
            for output in use.node.outputs if use.idx == 0 and use.node.op_type in _CARRIERS else ():
                if output.dtype in RANGES or output.dtype is None:
                    output.type = ir.TensorType(real.dtype) if real.dtype is not None else None
                    pending.append(output)
