"""Write a Gather with constant indices as Slices and one Concat.

Before -> After: `Gather(x, [5, 0, 1, 2, 2])` -> `Concat(Slice(x, 5:6), Slice(x, 0:3), Slice(x, 2:3))`: one Slice per
run of evenly growing indices; a single index is one Slice.
Why: the compiled code of a Gather that reads anything computed dies in the vendor's simulator (hbrtErrorForDeveloper),
int8 and int16, at most sizes (12x14x8, 16x16x8, 12x16x16; not at 16x16x16), although the tool builds it without a word.
Slices and Concat are exact. More than `runs` runs stay a Gather.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import (
    PROVENANCE,
    Array,
    Editor,
    attribute,
    constant_of,
    input_at,
    is_constant,
    shape_of,
)
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult, rewrite_nodes

RUNS = 32


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite Gather nodes of computed float tensors on any axis but the batch."""
    limit = int(parameters.get("runs", RUNS))

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _rewrite(node, editor, result, limit)

    return rewrite_nodes(model, PASS.id, {"Gather"}, rule)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult, limit: int) -> tuple[ir.Value, str] | None:
    x, indices, out = node.inputs[0], constant_of(input_at(node, 1)), node.outputs[0]
    shape, made = shape_of(x), shape_of(out)
    if x is None or is_constant(x) or indices is None or indices.ndim > 1 or shape is None or made is None:
        return None
    axis = int(attribute(node, "axis", 0)) % len(shape)
    if axis == 0 or x.dtype != ir.DataType.FLOAT or not indices.size:
        return None
    if indices.min() < -shape[axis] or indices.max() >= shape[axis]:
        return None  # the model does not run, which the comparison will say
    found = runs(np.where(indices < 0, indices + shape[axis], indices).reshape(-1))
    if len(found) > limit:
        result.skip(node, f"{len(found)} runs of indices, more than {limit}")
        return None
    base = node.name or "Gather"
    parts: list[ir.Value | None] = []
    if len(found) == 1 and node.metadata_props.get(PROVENANCE) == "replace-moves":
        return None  # it was a Slice, which sends the tool into an infinite loop there
    if found == [(0, shape[axis], 1)] and list(made) == list(shape):
        return x, "nothing: it takes everything in order"
    for start, count, step in found:
        bounds = {"starts": start, "ends": start + (count - 1) * step + 1, "axes": axis, "steps": step}
        given = [editor.constant(np.asarray([v], np.int64), f"{base}_{name}") for name, v in bounds.items()]
        part = [count if i == axis else d for i, d in enumerate(shape)]
        parts.append(editor.node(node, "Slice", [x, *given], part, hint=f"{base}_run" if len(found) > 1 else base))
    whole = [indices.size if i == axis else d for i, d in enumerate(shape)]
    value = parts[0] if len(parts) == 1 else editor.node(node, "Concat", parts, whole, {"axis": axis}, hint=base)
    if value is None:
        return None
    if list(made) != whole:
        value = editor.reshape(node, value, made, hint=f"{base}_shape")
    return value, f"{len(found)} Slices" if len(found) > 1 else "Slice"


def runs(indices: Array) -> list[tuple[int, int, int]]:
    """Indices as (start, count, step) with steps of at least 1; a row that comes again is a run of its own."""
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < len(indices):
        step = int(indices[at + 1] - indices[at]) if at + 1 < len(indices) else 1
        count = 1
        while step >= 1 and at + count < len(indices) and indices[at + count] - indices[at + count - 1] == step:
            count += 1
        found.append((int(indices[at]), count, max(step, 1)))
        at += count
    return found


PASS = Pass(
    id="slice-gather",
    summary="Gather with constant indices -> Slices and Concat",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(Parameter("runs", f"most Slices for one Gather; default {RUNS}"),),
)
