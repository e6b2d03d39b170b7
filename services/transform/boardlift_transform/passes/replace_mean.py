"""Replace Mean of several tensors by a sum and a factor.

Before -> After: `Mean(a, b)` -> `Mul(Add(a, b), 1/2)`.
Why: the runtime has no Mean: the tool fails at the very end ("not support these cpu operators: Mean").
Exactness: float rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite Mean nodes."""
    return rewrite_nodes(model, PASS.id, {"Mean"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    if any(v is None for v in node.inputs):
        return None
    base = node.name or "Mean"
    total = node.inputs[0]
    for value in node.inputs[1:]:
        left, right = shape_of(total), shape_of(value)
        shape = list(np.broadcast_shapes(left, right)) if left is not None and right is not None else None
        total = editor.node(node, "Add", [total, value], shape, hint=f"{base}_add")
    share = editor.constant(np.asarray(1 / len(node.inputs), np.float32), f"{base}_share")
    return editor.node(node, "Mul", [total, share], shape_of(node.outputs[0]), hint=base), "Add, Mul"


PASS = Pass(id="replace-mean", summary="Mean -> Add and Mul", exactness=ROUNDING, apply=apply)
