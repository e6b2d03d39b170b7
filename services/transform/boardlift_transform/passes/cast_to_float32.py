"""Make every floating-point value float32.

Before -> After: float16, bfloat16 and float64 weights, inputs and Casts -> float32.
Why: the toolchain refuses float16 and float64 ("unsupported input data type").
Exactness: float rounding; float16 is widened (the result is nearer to the truth than the original), float64 is narrowed
and the comparison with the original is the proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.passes._base import ROUNDING, Pass, PassResult
from boardlift_transform.refusal import Refusal

_OTHERS = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE})
_TYPE_ATTRIBUTES = ("to", "dtype")
FLOAT32_MAX = float(np.finfo(np.float32).max)


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite constants, types and type attributes, subgraphs included."""
    result = PassResult()
    graphs = [model.graph, *model.graph.subgraphs()]
    for graph in dict.fromkeys(graphs):
        for name, value in graph.initializers.items():
            if value.const_value is not None and value.dtype in _OTHERS:
                result.apply(name, f"constant {value.dtype}", "FLOAT")
                value.const_value = _narrowed(name, value.const_value)
        for value in (*graph.inputs, *graph.initializers.values(), *(o for n in graph for o in n.outputs)):
            if isinstance(value.type, ir.TensorType) and value.dtype in _OTHERS:
                if value.is_graph_input():
                    result.apply(value.name or "", f"input {value.dtype}", "FLOAT")
                value.type = ir.TensorType(ir.DataType.FLOAT)
        for node in graph:
            _rewrite_attributes(node, result)
    return result


def _rewrite_attributes(node: ir.Node, result: PassResult) -> None:
    for name, attr in list(node.attributes.items()):
        if name in _TYPE_ATTRIBUTES and attr.type == ir.AttributeType.INT and ir.DataType(attr.as_int()) in _OTHERS:
            node.attributes[name] = ir.AttrInt64(name, int(ir.DataType.FLOAT))
            result.apply(node, f"{node.op_type} {name}={ir.DataType(attr.as_int())}", "FLOAT")
        elif attr.type == ir.AttributeType.TENSOR and attr.as_tensor().dtype in _OTHERS:
            node.attributes[name] = ir.AttrTensor(name, _narrowed(name, attr.as_tensor()))
            result.apply(node, f"{node.op_type} {name}", "FLOAT")


def _narrowed(name: str, tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    array = np.asarray(tensor.numpy())
    wide = array.astype(np.float64)
    if np.any(np.isfinite(wide) & (np.abs(wide) > FLOAT32_MAX)):
        raise Refusal(
            "CONSTANT_TOO_LARGE",
            f"constant {name} holds values that float32 cannot",
            remedy="scale it before the export",
            metadata={"tensor": name},
        )
    return ir.tensor(array.astype(np.float32), name=name)


PASS = Pass(id="cast-to-float32", summary="float16, bfloat16 and float64 -> float32", exactness=ROUNDING, apply=apply)
