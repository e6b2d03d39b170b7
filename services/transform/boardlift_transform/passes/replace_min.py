"""Replace Min and ReduceMin by Max and ReduceMax of negated values.

Before -> After: `Min(a, b)` -> `-Max(-a, -b)`; `ReduceMin(x)` -> `-ReduceMax(-x)`; negation is Mul by -1.
Why: Min and ReduceMin run on the CPU; Max, ReduceMax and Mul by a constant on the BPU.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite float Min and ReduceMin nodes."""
    return rewrite_nodes(model, PASS.id, {"Min", "ReduceMin"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    out = node.outputs[0]
    if out.dtype != ir.DataType.FLOAT or any(v is None for v in node.inputs):
        return None
    base = node.name or node.op_type
    minus = editor.constant(np.asarray(-1, np.float32), f"{base}_minus")
    negated: list[ir.Value | None] = []
    for value in node.inputs:
        array = constant_of(value)
        if array is not None:
            negated.append(editor.constant(np.negative(array), f"{base}_negated"))
        else:
            negated.append(editor.node(node, "Mul", [value, minus], shape_of(value), hint=f"{base}_negate"))
    operator = "Max" if node.op_type == "Min" else "ReduceMax"
    attributes = {name: attribute(node, name) for name in node.attributes}
    largest = editor.node(node, operator, negated, shape_of(out), attributes, hint=base, dtype=out.dtype)
    return editor.node(node, "Mul", [largest, minus], shape_of(out), hint=f"{base}_back"), f"-{operator}(-...)"


PASS = Pass(id="replace-min", summary="Min, ReduceMin -> -Max(-), -ReduceMax(-)", exactness=BIT_EXACT, apply=apply)
