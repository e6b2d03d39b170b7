"""Give every input a fixed 4-D float32 shape.

Before -> After, by rank of the user's input:
    rank 0 `[]`              -> `[1,1,1,1]`
    rank 1 `[D]`             -> `[1,1,1,D]`
    rank 2 `[N,D]`           -> `[N,1,1,D]`
    rank 3 `[N,T,D]`         -> `[N,1,T,D]`
    rank 4                   -> unchanged
    rank > 4 `[N,...,H,W]`   -> `[N,prod(...),H,W]`
The elements keep their order, so feeding is a reshape. The new input is called `<name>_4d`. Integer and bool inputs
become float32 with a Cast inside (exact below 2^24), unless the model itself casts them to float, also behind moves.
Why: the toolchain's feature-map input is 4-D NCHW, and robot code wants one rule. A Cast to int between two quantised
values rounds down (1.9999 -> 1): a mode of 0..2 that went into a Concat cost its policy everything (cosine 0.10 instead
of 1.00 in int16, simulated).
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import ORIGIN, Editor, attribute, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult
from boardlift_transform.refusal import Refusal

_EXACT_IN_FLOAT = frozenset(
    getattr(ir.DataType, n) for n in ["FLOAT16", "DOUBLE", "INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64", "BOOL"]
)
_MOVES = frozenset({"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Gather", "Split", "Identity"})


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
        if old.dtype != ir.DataType.FLOAT and _spare_casts(old, inner):
            result.apply(old.name or "", "Cast to float", "removed: the input is fed as float")
        if old.dtype != ir.DataType.FLOAT and (old.uses() or old.is_graph_output()):
            attributes = {"to": int(old.dtype or 0)}
            inner = editor.node(first, "Cast", [inner], shape, attributes, hint=f"{old.name}_cast", dtype=old.dtype)
        graph.inputs[index] = new
        old.replace_all_uses_with(inner, replace_graph_outputs=True)
        result.apply(old.name or "", f"{old.name} {old.dtype} {list(shape)}", f"{new.name} FLOAT {wide}")
    return result


def _spare_casts(old: ir.Value, real: ir.Value) -> bool:
    """Let what only ends in casts to float read the float input itself."""
    found = False
    for use in list(old.uses()):
        casts = _casts_to_float(use.node, use.idx)
        if casts is None:
            continue
        found = True
        if use.node not in casts:
            use.node.replace_input_with(use.idx, real)
        for cast in casts:
            source = real if cast.inputs[0] is old else cast.inputs[0]
            if source is not None and source is not real:
                _as_float(source)
            if cast.outputs[0].is_graph_output() or source is None:
                cast.replace_input_with(0, source)
            else:
                cast.outputs[0].replace_all_uses_with(source)
    return found


def _casts_to_float(node: ir.Node, index: int) -> list[ir.Node] | None:
    """The Casts to float in which a reader ends, itself or behind moves; None when it ends in anything else."""
    if node.op_type == "Cast":
        return [node] if int(attribute(node, "to", 0)) == ir.DataType.FLOAT else None
    if index != 0 or node.op_type not in _MOVES or any(o.is_graph_output() for o in node.outputs):
        return None
    found = [_casts_to_float(use.node, use.idx) for output in node.outputs for use in output.uses()]
    return None if any(f is None for f in found) else [cast for part in found for cast in part or []]


def _as_float(value: ir.Value | None) -> None:
    """Moves in front of a value carry floats from here on."""
    while value is not None and value.dtype != ir.DataType.FLOAT:
        value.type = ir.TensorType(ir.DataType.FLOAT)
        producer = value.producer()
        value = producer.inputs[0] if producer is not None and producer.op_type in _MOVES else None


def four_dimensions(shape: Sequence[int]) -> list[int]:
    """The 4-D shape of an input of any rank (see the module docstring)."""
    dims = [int(d) for d in shape]
    if len(dims) <= 1:
        return [1] * (4 - len(dims)) + dims
    if len(dims) <= 4:
        return [dims[0], *[1] * (4 - len(dims)), *dims[1:]]
    return [dims[0], int(np.prod(dims[1:-2])), *dims[-2:]]


PASS = Pass(id="wrap-inputs", summary="every input a fixed 4-D float32 feature map", exactness=BIT_EXACT, apply=apply)
