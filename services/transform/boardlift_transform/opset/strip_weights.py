"""Split a model into a light skeleton and its weights, so that no step but the last touches the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import ModelProto, TensorProto, helper

HEAVY_BYTES = 4096
"""Initialisers above this size become inputs of the skeleton: shape inference reads only small constants."""

_ALL_IRS = 4
"""First IR version in which an initialiser needs no input of the same name."""


def weight_bytes(tensor: TensorProto) -> int:
    """Bytes of a tensor's payload, counted without reading it."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return HEAVY_BYTES + 1
    return len(tensor.raw_data) or 8 * (
        len(tensor.float_data) + len(tensor.int32_data) + len(tensor.int64_data) + len(tensor.double_data)
        + len(tensor.uint64_data) + len(tensor.string_data)
    )  # fmt: skip


def skeleton(model: ModelProto, input_shapes: Mapping[str, Sequence[int]] | None) -> ModelProto:
    """Copy of a model without its heavy initialisers, which become inputs of their type.

    Args:
        model: The model; not changed.
        input_shapes: Shapes that replace those of the named graph inputs.

    Returns:
        A model that the checker and shape inference take, of the size of the graph alone.
    """
    light = ModelProto(ir_version=max(model.ir_version, _ALL_IRS))
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    source, graph = model.graph, light.graph
    graph.name = source.name
    graph.node.extend(source.node)
    graph.input.extend(source.input)
    graph.output.extend(source.output)
    graph.sparse_initializer.extend(source.sparse_initializer)
    names = {v.name for v in source.input}
    for tensor in source.initializer:
        if weight_bytes(tensor) > HEAVY_BYTES:
            if tensor.name not in names:
                graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        else:
            graph.initializer.append(tensor)
    for value in graph.input:
        if input_shapes and value.name in input_shapes:
            fix_shape(value, input_shapes[value.name])
    return light


def fix_shape(value: onnx.ValueInfoProto, dims: Sequence[int]) -> None:
    """Write a static shape into a value."""
    elem = value.type.tensor_type.elem_type
    value.type.CopyFrom(helper.make_tensor_type_proto(elem, list(dims)))
