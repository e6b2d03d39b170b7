"""Split a model into a light skeleton and its weights, so that no step but the last touches the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx
from onnx import ModelProto, TensorProto, helper

HEAVY_ELEMENTS = 1024
"""Initialisers of more elements become inputs of the skeleton: shape inference reads only small constants."""

_ALL_IRS = 4
"""First IR version in which an initialiser needs no input of the same name."""


def is_heavy(tensor: TensorProto) -> bool:
    """Whether a tensor is a weight rather than a parameter; told by its shape, without touching its data."""
    return tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) > HEAVY_ELEMENTS


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
        if is_heavy(tensor):
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
