"""Types and shapes of one node's outputs from those of its inputs, by onnx's own inference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx.defs
import onnx.shape_inference
import onnx_ir as ir
from onnx import helper, numpy_helper

from boardlift_transform.edit_graph import attribute, constant_of, is_constant, shape_of

MAX_DATA_ELEMENTS = 4096


_SAME = frozenset(
    [
        "Relu",
        "Elu",
        "Sigmoid",
        "Tanh",
        "LeakyRelu",
        "Softplus",
        "Abs",
        "Exp",
        "Log",
        "Sqrt",
        "Erf",
        "Neg",
        "Floor",
        "Ceil",
        "Selu",
        "HardSigmoid",
    ]
)


_POOLS = frozenset({"MaxPool", "AveragePool"})
_POOLS_SINCE = 22
"""Inference of older versions counts a ceil_mode window that starts in the end padding, which onnxruntime drops."""


_BROADCAST = frozenset({"Add", "Sub", "Mul", "Div"})


def copy_shape(node: ir.Node) -> bool:
    """Element-wise operators need no inference."""
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type in _BROADCAST:
        return _broadcast_shape(node)
    x = node.inputs[0] if node.inputs else None
    if node.op_type not in _SAME or x is None or shape_of(x) is None:
        return False
    node.outputs[0].type, node.outputs[0].shape = x.type, x.shape
    return True


def _broadcast_shape(node: ir.Node) -> bool:
    """Both inputs known and of one type; attributes mean an operator set that broadcasts by another rule."""
    if len(node.inputs) != 2 or node.attributes:
        return False
    left, right = node.inputs
    dims = shape_of(left), shape_of(right)
    if left is None or right is None or dims[0] is None or dims[1] is None:
        return False
    if left.dtype is None or left.dtype != right.dtype:
        return False
    try:
        shape = np.broadcast_shapes(dims[0], dims[1])
    except ValueError:
        return False
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(left.dtype), ir.Shape(shape)
    return True


def infer_node(node: ir.Node, imports: Mapping[str, int], schemas: dict[str, onnx.defs.OpSchema | None]) -> None:
    """Set types and shapes of the node's outputs as far as they can be known; errors leave what was there."""
    if node.domain not in ("", "ai.onnx"):
        return
    if node.op_type == "If":
        _infer_if(node)
        return
    if node.op_type == "STFT" and "onesided" not in node.attributes:  # inference takes 0 where the definition says 1
        node.attributes["onesided"] = ir.AttrInt64("onesided", 1)
    version = imports.get("", imports.get("ai.onnx", 1))
    kind = node.op_type
    if kind in _POOLS and attribute(node, "ceil_mode", 0):
        kind, version = f"{kind} with ceil_mode", _POOLS_SINCE
    if kind not in schemas:
        try:
            schemas[kind] = onnx.defs.get_schema(node.op_type, version, "")
        except onnx.defs.SchemaError:
            schemas[kind] = None
    schema = schemas[kind]
    if schema is None:
        return
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for value in node.inputs:
        if value is None or not value.name:
            continue
        described = _type_proto(value)
        if described is not None:
            types[value.name] = described
        if is_constant(value) and (value.const_value.size if value.const_value else 0) <= MAX_DATA_ELEMENTS:
            array = constant_of(value)
            if array is not None and array.dtype != object:
                data[value.name] = numpy_helper.from_array(np.ascontiguousarray(array))
    if any(v is not None and v.name not in types for v in node.inputs):
        return  # an input of unknown type: nothing can be said
    opsets = [helper.make_opsetid(domain, v) for domain, v in imports.items()]
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            schema, ir.serde.serialize_node(node), types, data, opset_imports=opsets
        )
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError, TypeError, onnx.checker.ValidationError):
        return
    for output in node.outputs:
        found = inferred.get(output.name or "")
        if found is not None and found.HasField("tensor_type"):
            _set_type(output, found.tensor_type)


def _infer_if(node: ir.Node) -> None:
    """Types and shapes that both branches agree on; those of a branch were inferred where it stands."""
    branches = (node.attributes[name].as_graph().outputs for name in ("then_branch", "else_branch"))
    for output, then, otherwise in zip(node.outputs, *branches, strict=False):
        if then.type is not None and then.type == otherwise.type:
            output.type = then.type
        if shape_of(then) is not None and shape_of(then) == shape_of(otherwise):
            output.shape = ir.Shape(shape_of(then) or ())


def _type_proto(value: ir.Value) -> onnx.TypeProto | None:
    if isinstance(value.type, ir.TensorType):
        shape = None if value.shape is None else [d if isinstance(d, int) else d.value for d in value.shape]
        return helper.make_tensor_type_proto(int(value.dtype), shape)  # type: ignore[arg-type]
    if value.type is not None:
        proto = onnx.TypeProto()
        ir.serde.serialize_type_into(proto, value.type)
        return proto
    return None


def _set_type(output: ir.Value, found: onnx.TypeProto.Tensor) -> None:
    if found.elem_type:
        output.type = ir.TensorType(ir.DataType(found.elem_type))
    if not found.HasField("shape"):
        return
    dims: list[int | str | None] = []
    for dim in found.shape.dim:
        if dim.HasField("dim_value"):
            dims.append(dim.dim_value)
        else:
            dims.append(dim.dim_param or None)
    if output.shape is not None and len(output.shape) == len(dims):
        # what the file states helps only where inference knows nothing
        dims = [
            old if not isinstance(new, int) and isinstance(old, int) else new
            for old, new in zip(output.shape, dims, strict=False)
        ]
    output.shape = ir.Shape(dims)
