"""Give every input a fixed 4-D float32 shape.

Before -> After, by rank of the user's input:
    rank 0 `[]`              -> `[1,1,1,1]`
    rank 1 `[D]`             -> `[1,1,1,D]`
    rank 2 `[N,D]`           -> `[N,1,1,D]`
    rank 3 `[N,T,D]`         -> `[N,1,T,D]`
    rank 4                   -> unchanged
    rank > 4 `[N,...,H,W]`   -> `[N,prod(...),H,W]`
The elements keep their order, so feeding is a reshape. The new input is called `<name>_4d`. Integer and bool inputs
become float32 with a Cast inside (exact below 2^24).
Why: the toolchain's feature-map input is 4-D NCHW, and robot code wants one rule.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import ORIGIN, Editor, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult
from boardlift_transform.refusal import Refusal

_EXACT_IN_FLOAT = frozenset(
    getattr(ir.DataType, n) for n in ["FLOAT16", "DOUBLE", "INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64", "BOOL"]
)


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Wrap each input; 4-D float inputs stay as they are."""
    result = PassResult()
    graph = model.graph
    editor = Editor(graph, PASS.id)
    for index, old in enumerate(list(graph.inputs)):
        shape = shape_of(old)
        if shape is None:
            raise Refusal("INPUT_SHAPE_REQUIRED", f"input {old.name} has no static shape", metadata={"input": old.name})
        if old.dtype != ir.DataType.FLOAT and old.dtype not in _EXACT_IN_FLOAT:
            raise Refusal("INPUT_TYPE", f"input {old.name} is {old.dtype}", metadata={"input": old.name})
        if len(shape) == 4 and old.dtype == ir.DataType.FLOAT:
            continue
        wide = four_dimensions(shape)
        new = ir.Value(
            name=editor.value_name(f"{old.name}_4d"), shape=ir.Shape(wide), type=ir.TensorType(ir.DataType.FLOAT)
        )
        new.metadata_props[ORIGIN] = old.metadata_props.get(ORIGIN, old.name or "")
        first = next(iter(graph), None)
        inner = new
        if tuple(wide) != shape:
            inner = editor.reshape(first, new, shape, hint=f"{old.name}_unwrap")
        if old.dtype != ir.DataType.FLOAT:
            attributes = {"to": int(old.dtype or 0)}
            inner = editor.node(first, "Cast", [inner], shape, attributes, hint=f"{old.name}_cast", dtype=old.dtype)
        graph.inputs[index] = new
        old.replace_all_uses_with(inner, replace_graph_outputs=True)
        result.apply(old.name or "", f"{old.name} {old.dtype} {list(shape)}", f"{new.name} FLOAT {wide}")
    return result


def four_dimensions(shape: Sequence[int]) -> list[int]:
    """The 4-D shape of an input of any rank (see the module docstring)."""
    dims = [int(d) for d in shape]
    if len(dims) <= 1:
        return [1] * (4 - len(dims)) + dims
    if len(dims) <= 4:
        return [dims[0], *[1] * (4 - len(dims)), *dims[1:]]
    return [dims[0], int(np.prod(dims[1:-2])), *dims[-2:]]


PASS = Pass(id="wrap-inputs", summary="every input a fixed 4-D float32 feature map", exactness=BIT_EXACT, apply=apply)
