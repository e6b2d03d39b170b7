"""Merge MatMul with a constant matrix and a following constant Add into Gemm.

Before -> After: `MatMul(x, W) -> Add(b)` -> `Gemm(x, W, b)` for rank-2 x.
Why: one row instead of two in the tool, and one form for the passes that follow.
Exactness: float rounding (the bias may be added at another point of the kernel).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import (
    Editor,
    constant_of,
    input_at,
    is_constant,
    only_use,
    rank_of,
    remove_unused,
    shape_of,
)
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every such pair."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    for node in model.graph:
        if node.op_type != "MatMul" or node.domain not in ("", "ai.onnx"):
            continue
        x, weight = node.inputs[0], input_at(node, 1)
        if (
            x is None
            or is_constant(x)
            or not is_constant(weight)
            or rank_of(x) != 2
            or len(shape_of(weight) or ()) != 2
        ):
            continue
        add = only_use(node.outputs[0])
        if add is None or add.op_type != "Add":
            continue
        other = add.inputs[1] if add.inputs[0] is node.outputs[0] else add.inputs[0]
        bias = constant_of(other)
        columns = (shape_of(weight) or (0, 0))[1]
        if bias is None or bias.dtype != np.float32 or bias.size not in (1, columns):
            result.skip(node, "what is added is not one constant per column")
            continue
        vector = np.ascontiguousarray(np.broadcast_to(bias.reshape(-1), (columns,)))
        editor.release(node)
        made = editor.node(
            add,
            "Gemm",
            [x, weight, editor.constant(vector, f"{node.name or 'Gemm'}_bias")],
            shape_of(add.outputs[0]),
            {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0},
            hint=node.name or "Gemm",
        )
        editor.replace(add.outputs[0], made)
        result.apply(node, "MatMul, Add", "Gemm")
    remove_unused(model.graph)
    return result


PASS = Pass(id="merge-matmul-add", summary="MatMul + Add -> Gemm", exactness=ROUNDING, apply=apply)
