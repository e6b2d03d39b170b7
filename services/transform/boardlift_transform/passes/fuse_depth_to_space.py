"""Recognise pixel shuffle written as Reshape, Transpose, Reshape.

Before -> After: `Reshape [N,C,r,r,H,W] -> Transpose (0,1,4,2,5,3) -> Reshape [N,C,Hr,Wr]` -> `DepthToSpace(CRD)`; the
order
`[N,r,r,C,H,W]`, `(0,3,4,1,5,2)` -> `DepthToSpace(DCR)`.
Why: the 6-D form runs on the CPU and its Reshapes fix the batch; DepthToSpace runs on the BPU.
Exactness: bit-exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, only_use, shape_of
from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult, rewrite_nodes

_MODES = {(0, 1, 4, 2, 5, 3): ("CRD", (1, 2, 3)), (0, 3, 4, 1, 5, 2): ("DCR", (3, 1, 2))}


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite the last Reshape of each such chain."""
    return rewrite_nodes(model, PASS.id, {"Reshape"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    moved = node.inputs[0]
    transpose = moved.producer() if moved is not None else None
    if moved is None or transpose is None or transpose.op_type != "Transpose" or only_use(moved) is not node:
        return None
    inner = transpose.inputs[0]
    first = inner.producer() if inner is not None else None
    found = _MODES.get(tuple(attribute(transpose, "perm") or ()))
    if (
        inner is None
        or first is None
        or first.op_type != "Reshape"
        or found is None
        or only_use(inner) is not transpose
    ):
        return None
    mode, (channel, high, wide) = found
    x, six, out = first.inputs[0], shape_of(inner), shape_of(node.outputs[0])
    before = shape_of(x)
    if x is None or six is None or before is None or len(before) != 4 or six[high] != six[wide]:
        return None
    block = six[high]
    expected = (six[0], six[channel], six[4] * block, six[5] * block)
    if out != expected or before != (six[0], six[channel] * block * block, six[4], six[5]):
        return None
    attributes = {"blocksize": block, "mode": mode}
    return editor.node(
        node, "DepthToSpace", [x], out, attributes, hint=node.name or "DepthToSpace"
    ), f"DepthToSpace({mode})"


PASS = Pass(
    id="fuse-depth-to-space", summary="Reshape, Transpose, Reshape -> DepthToSpace", exactness=BIT_EXACT, apply=apply
)
