"""Write the batch of 1 into every Reshape constant.

Before -> After: `Reshape(x, [-1, 8, 32])` -> `Reshape(x, [1, 8, 32])`.
Why: not part of the default plan. When a model mixes the batch with other axes, batch 8 may run and give other
numbers than eight single runs; then the calibrator must fail at batch 8 and fall back to 1, which is slow and right.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, constant_of, input_at, remove_unused, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult


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
    remove_unused(model.graph)
    return result


PASS = Pass(id="pin-batch", summary="-1 of Reshape constants -> the static size", exactness=BIT_EXACT, apply=apply)
