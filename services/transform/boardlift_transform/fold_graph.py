"""One walk over the graph that infers every type and shape and folds what is constant.

Folding and inference feed each other (`Shape` of a known shape is a constant, a constant Reshape target gives a shape),
so both happen node by node in graph order: one pass, linear time, no fixed-point loop. `If` with a constant condition
is replaced by its branch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx.defs
import onnx.shape_inference
import onnx_ir as ir
from onnx import helper, numpy_helper

from boardlift_transform.edit_graph import Array, Editor, attribute, constant_of, is_constant, shape_of, used_opset
from boardlift_transform.evaluate_node import MAX_OUTPUT_ELEMENTS, evaluate_node
from boardlift_transform.pass_result import PassResult, node_label

MAX_GROWTH = 4
MAX_DATA_ELEMENTS = 4096
MAX_DIMENSION = 1 << 40


def fold_graph(model: ir.Model, pass_id: str, *, trust: bool = False) -> PassResult:
    """Infer types and shapes of all values in place and fold constants.

    Args:
        model: Edited in place.
        pass_id: Provenance of new nodes.
        trust: Keep static shapes that are there. They come from an earlier walk; those of a user's file may be wrong.

    Returns:
        Applied: every folded node. Skipped: foldable nodes whose result would be too large.
    """
    result = PassResult()
    editor = Editor(model.graph, pass_id)
    _lift_constant_nodes(model.graph, editor)
    opset = used_opset(model)
    schemas: dict[str, onnx.defs.OpSchema | None] = {}
    for node in model.graph:
        if node.graph is None:
            continue
        if _fold_shape(node, editor, result) or _fold_if(node, editor, result):
            continue
        if _fold_constants(node, editor, opset, result):
            continue
        if trust and all(o.type is not None and shape_of(o) is not None for o in node.outputs):
            continue
        if _copy_shape(node):
            continue
        _infer(node, model.graph.opset_imports, schemas)
    return result


def _lift_constant_nodes(graph: ir.Graph, editor: Editor) -> None:
    for node in list(graph):
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
            continue
        tensor = _constant_tensor(node)
        if tensor is None:
            continue
        old = node.outputs[0]
        name = old.name
        value = ir.Value(
            name=None, shape=ir.Shape(list(tensor.shape.numpy())), type=ir.TensorType(tensor.dtype), const_value=tensor
        )
        if old.is_graph_output():
            value.name = editor.value_name(f"{name}_value")
        else:
            old.name = editor.value_name(f"{name}_node")
            value.name = name
        graph.register_initializer(value)
        editor.replace(old, value)
        editor.drop(node)


def _constant_tensor(node: ir.Node) -> ir.TensorProtocol | None:
    tensor = attribute(node, "value")
    if tensor is not None:
        return ir.tensor(tensor.numpy()) if not isinstance(tensor, ir.TensorProtocol) else tensor
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64)):
        if name in node.attributes:
            return ir.tensor(np.asarray(attribute(node, name), dtype))
    if "value_ints" in node.attributes:
        return ir.tensor(np.asarray(attribute(node, "value_ints"), np.int64))
    return None


def _fold_shape(node: ir.Node, editor: Editor, result: PassResult) -> bool:
    if node.op_type not in ("Shape", "Size") or node.domain not in ("", "ai.onnx"):
        return False
    shape = shape_of(node.inputs[0])
    if shape is None:
        return False
    if node.op_type == "Size":
        array = np.asarray(int(np.prod(shape, dtype=np.int64)), np.int64)
    else:
        start, end = int(attribute(node, "start", 0)), attribute(node, "end")
        array = np.asarray(shape[start : None if end is None else int(end)], np.int64)
    _replace_by_constants(node, [array], editor)
    result.apply(node, node.op_type, f"constant {array.tolist()}")
    return True


def _fold_if(node: ir.Node, editor: Editor, result: PassResult) -> bool:
    if node.op_type != "If" or node.domain not in ("", "ai.onnx"):
        return False
    condition = constant_of(node.inputs[0])
    if condition is None:
        return False
    name = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
    branch: ir.Graph = node.attributes[name].as_graph()
    outputs = list(branch.outputs)
    anchor = node
    for inner_name, value in list(branch.initializers.items()):
        del branch.initializers[inner_name]
        value.name = editor.value_name(inner_name)
        editor.graph.register_initializer(value)
    for inner in list(branch):
        branch.remove(inner)
        for output in inner.outputs:
            output.name = editor.value_name(output.name or "branch_value")
        inner.metadata_props["boardlift.pass"] = editor.pass_id
        anchor.append(inner)
        anchor = inner
    _detach_outputs(branch)
    for old, new in zip(node.outputs, outputs, strict=False):
        editor.replace(old, new)
    label = node_label(node)
    editor.drop(node)
    # Constant nodes of the branch come up in this same walk and fold like any other node.
    result.apply(label, "If with constant condition", f"its {name.replace('_', ' ')}")
    return True


def _detach_outputs(branch: ir.Graph) -> None:
    while branch.outputs:
        branch.outputs.pop()


def _fold_constants(node: ir.Node, editor: Editor, opset: int, result: PassResult) -> bool:
    if node.op_type == "Constant":
        tensor = _constant_tensor(node)
        if tensor is None:
            return False
        _replace_by_constants(node, [np.asarray(tensor.numpy())], editor)
        return True
    if not node.inputs or not all(v is None or is_constant(v) for v in node.inputs):
        return False
    if node.op_type == "Identity" and node.outputs[0].is_graph_output():
        return False  # a constant graph output must be made by a node
    if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
        return False
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        return False
    arrays = [constant_of(v) for v in node.inputs]
    outputs = evaluate_node(node, arrays, opset)
    if outputs is None:
        return False
    read = sum(a.size for a in arrays if a is not None)
    made = sum(o.size for o in outputs)
    if made > MAX_OUTPUT_ELEMENTS and made > MAX_GROWTH * read:
        result.skip(node, f"the constant would grow from {read} to {made} elements")
        return False
    _replace_by_constants(node, outputs, editor)
    result.apply(node, node.op_type, "constant")
    return True


def _replace_by_constants(node: ir.Node, arrays: list[Array], editor: Editor) -> None:
    for old, array in zip(node.outputs, arrays, strict=False):
        if old.uses() or old.is_graph_output():
            editor.replace(old, editor.constant(array, f"{old.name}_folded"))
    editor.drop(node)


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


def _copy_shape(node: ir.Node) -> bool:
    """Element-wise operators need no inference."""
    x = node.inputs[0] if node.inputs else None
    if node.op_type not in _SAME or node.domain not in ("", "ai.onnx") or x is None or shape_of(x) is None:
        return False
    node.outputs[0].type, node.outputs[0].shape = x.type, x.shape
    return True


def _infer(node: ir.Node, imports: Mapping[str, int], schemas: dict[str, onnx.defs.OpSchema | None]) -> None:
    """Set types and shapes of the node's outputs as far as they can be known; errors leave what was there."""
    if node.domain not in ("", "ai.onnx"):
        return
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
