"""Free the batch in Reshape constants.

Before -> After: `Reshape(x, [1, 8, -1])` -> `Reshape(x, [-1, 8, 32])`: other -1 filled in first, then the leading 1
is -1.
Why: a literal 1 breaks the calibrator's batch of 8; it repeats everything with batch 1, 4 to 6 times slower. A 0 does
not help, the tool writes it back as 1.
Exactness: bit-exact. Only where input and output both start with the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.batch_axis import batch_values
from boardlift_transform.edit_graph import Editor, constant_of, input_at, remove_unused, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite the shape constant of every Reshape, Flatten, Squeeze and Unsqueeze on the batch path."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    carried = batch_values(model.graph)
    for node in list(model.graph):
        if node.op_type not in ("Reshape", "Squeeze", "Unsqueeze", "Flatten") or node.inputs[0] is None:
            continue
        shape = shape_of(node.outputs[0])
        if shape is None or len(shape) < 2 or shape[0] != 1:
            continue
        target = constant_of(input_at(node, 1)) if node.op_type == "Reshape" else None
        dims = [-1, *[int(d) for d in shape[1:]]]
        if target is not None and target.tolist() == dims:
            continue
        if node.inputs[0] not in carried or node.outputs[0] not in carried:
            result.skip(node, "axis 0 is not provably the batch on both sides")
            continue
        constant = editor.constant(np.asarray(dims, np.int64), f"{node.outputs[0].name}_dims")
        if node.op_type == "Reshape":
            node.replace_input_with(1, constant)
        else:
            editor.release(node)
            made = editor.node(node, "Reshape", [node.inputs[0], constant], shape, hint=node.name or "Reshape")
            editor.replace(node.outputs[0], made)
            carried.add(made)
        result.apply(
            node, f"{node.op_type} to {target.tolist() if target is not None else list(shape)}", f"Reshape to {dims}"
        )
    remove_unused(model.graph)
    return result


PASS = Pass(id="free-batch", summary="leading literal 1 of Reshape constants -> -1", exactness=BIT_EXACT, apply=apply)
