"""Replace Neg by a multiplication.

Before -> After: `Neg(x)` -> `Mul(x, -1)`.
Why: Neg runs on the CPU and splits the subgraph; Mul by a constant fuses away.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite float Neg nodes."""
    return rewrite_nodes(model, PASS.id, {"Neg"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    x = node.inputs[0]
    if x is None or x.dtype != ir.DataType.FLOAT:
        return None
    minus = editor.constant(np.asarray(-1, np.float32), f"{node.name}_minus")
    return editor.node(node, "Mul", [x, minus], shape_of(node.outputs[0]), hint=node.name or "Neg"), "Mul(-1)"


PASS = Pass(id="replace-neg", summary="Neg -> Mul(-1)", exactness=BIT_EXACT, apply=apply)
