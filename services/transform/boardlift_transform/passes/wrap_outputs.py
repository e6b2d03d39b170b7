"""Give every float output a fixed 4-D shape.

Before -> After, by rank of the user's output:
    rank 0 `[]`              -> `[1,1,1,1]`
    rank 1 `[C]`             -> `[1,C,1,1]`
    rank 2 `[N,C]`           -> `[N,C,1,1]`
    rank 3 `[N,T,C]`         -> `[N,1,T,C]`, or `[N,C,1,T]` where the model ends in that form already
    rank 4                   -> unchanged
    rank > 4 `[N,...,H,W]`   -> `[N,prod(...),H,W]`
Names stay; elements keep their order.
Why: the runtime reads 4-D tensors; a Reshape at the end of a graph runs on the CPU.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Wrap each float output."""
    result = PassResult()
    graph = model.graph
    editor = Editor(graph, PASS.id)
    for index, old in enumerate(list(graph.outputs)):
        shape = shape_of(old)
        if shape is None:
            result.skip(old.name or "", "its shape is not static")
            continue
        if old.dtype != ir.DataType.FLOAT:
            result.skip(old.name or "", f"its type is {old.dtype}, not float32")
            continue
        if len(shape) == 4:
            continue
        name = old.name or f"output_{index}"
        wide = four_dimensions(shape)
        new = editor.reshape(None, old, wide, hint=f"{name}_wrap")
        graph.outputs[index] = new
        old.name = editor.value_name(f"{name}_inner")
        new.name = name
        result.apply(name, f"{list(shape)}", f"{wide}")
    return result


def four_dimensions(shape: Sequence[int]) -> list[int]:
    """The 4-D shape of an output of any rank (see the module docstring)."""
    dims = [int(d) for d in shape]
    if not dims:
        return [1, 1, 1, 1]
    if len(dims) == 1:
        return [1, dims[0], 1, 1]
    if len(dims) == 2:
        return [*dims, 1, 1]
    if len(dims) == 3:
        return [dims[0], 1, *dims[1:]]
    return dims if len(dims) == 4 else [dims[0], int(np.prod(dims[1:-2])), *dims[-2:]]


PASS = Pass(id="wrap-outputs", summary="every float output a fixed 4-D tensor", exactness=BIT_EXACT, apply=apply)
