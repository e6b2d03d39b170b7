"""Write the batch of 1 into every Reshape constant.

Before -> After: `Reshape(x, [-1, 8, 32])` -> `Reshape(x, [1, 8, 32])`.
Why: not part of the default plan. When a model mixes the batch with other axes, batch 8 may run and give other
numbers than eight single runs; then the calibrator must fail at batch 8 and fall back to 1, which is slow and right.
With `guard`, asked for when no Reshape stops batch 8, every input goes through a literal row: Reshape, Mul(1), Reshape
(measured: the tool merges two Reshapes with nothing between them, and then runs batch 8 after all).
Exactness: bit-exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, constant_of, input_at, remove_unused, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite the shape constant of every Reshape with a static result."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    for node in model.graph:
        target, shape = constant_of(input_at(node, 1)), shape_of(node.outputs[0])
        if node.op_type != "Reshape" or target is None or shape is None or target.tolist() == list(shape):
            continue
        constant = editor.constant(np.asarray(shape, np.int64), f"{node.outputs[0].name}_dims")
        node.replace_input_with(1, constant)
        result.apply(node, f"Reshape to {target.tolist()}", f"Reshape to {list(shape)}")
    if parameters.get("guard"):
        for value in list(model.graph.inputs):
            _guard(value, editor, result)
    remove_unused(model.graph)
    return result


def _guard(value: ir.Value, editor: Editor, result: PassResult) -> None:
    shape, readers = shape_of(value), list(value.uses())
    if shape is None or not readers or shape[:1] != (1,):
        return
    anchor = min((use.node for use in readers), key=list(editor.graph).index)
    row = [1, *[1] * (len(shape) - 2), math.prod(shape)] if len(shape) > 1 else [1]
    flat = editor.reshape(anchor, value, row, row, hint=f"{value.name}_pinned_row")
    one = editor.constant(np.ones((), np.dtype(value.dtype.numpy() if value.dtype else "float32")), f"{value.name}_one")
    kept = editor.node(anchor, "Mul", [flat, one], row, hint=f"{value.name}_pinned_product")
    held = editor.reshape(anchor, kept, shape, shape, hint=f"{value.name}_pinned")
    for use in readers:
        use.node.replace_input_with(use.idx, held)
    result.apply(value.name or "", "input of any batch", f"through {row} and back to {list(shape)}")


PASS = Pass(
    id="pin-batch",
    summary="-1 of Reshape constants -> the static size",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(Parameter("guard", "true pins every input too; default false"),),
)
