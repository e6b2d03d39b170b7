"""Sparse constants made dense: the tools that follow know dense ones only."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import numpy_helper

from boardlift_transform.edit_graph import Array
from boardlift_transform.refusal import Refusal

MAX_DENSE_ELEMENTS = 1 << 28


def densify(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model itself, or a copy whose sparse initialisers and sparse Constants are dense.

    Raises:
        Refusal: SHAPE_TOO_LARGE beyond 2^28 elements; INITIALIZER_SIZE for indices that do not fit.
    """
    constants = [n for n in model.graph.node if any(a.name == "sparse_value" for a in n.attribute)]
    if not model.graph.sparse_initializer and not constants:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for sparse in copy.graph.sparse_initializer:
        copy.graph.initializer.append(numpy_helper.from_array(_dense(sparse), sparse.values.name))
    del copy.graph.sparse_initializer[:]
    for node in copy.graph.node:
        for attr in node.attribute:
            if attr.name == "sparse_value":
                tensor = numpy_helper.from_array(_dense(attr.sparse_tensor))
                attr.CopyFrom(onnx.helper.make_attribute("value", tensor))
    return copy


def _dense(sparse: onnx.SparseTensorProto) -> Array:
    """Entries in their places; indices are linear `[n]` or coordinates `[n, rank]`."""
    dims, name = list(sparse.dims), sparse.values.name or "sparse constant"
    if any(d <= 0 for d in dims) or math.prod(dims) > MAX_DENSE_ELEMENTS:
        raise Refusal("SHAPE_TOO_LARGE", f"{name} has dimensions {dims[:8]}", metadata={"tensor": name})
    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    try:
        flat = np.ravel_multi_index(tuple(places.T), tuple(dims)) if places.ndim == 2 else places
        made = np.zeros(math.prod(dims), values.dtype)
        if np.any(flat < 0) or len(flat) != len(values):
            raise IndexError
        made[flat] = values
    except (IndexError, ValueError):
        raise Refusal(
            "INITIALIZER_SIZE",
            f"constant {name} has indices outside of its shape {dims}",
            remedy="the file is damaged: export it again",
            metadata={"tensor": name},
        ) from None
    return made.reshape(dims)
