"""Write a grouped Conv of kernel 1 as one dense Conv with a block-diagonal weight.

Before -> After: `Conv(group 8, [256,256,1,1])` -> `Conv(group 1, [256,2048,1,1])`, zeros outside the blocks.
Why: not part of the default plan. A lifted grouped Conv stays on the BPU by itself; the dense form costs more at
levels O0 and O1 (1.6 to 1.9 times, measured) and can pay at O2 and O3, where zeros are packed. Ask for it and compare.
Exactness: float rounding (adds zeros).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, attribute, constant_of, input_at, shape_of
from boardlift_transform.passes._base import ROUNDING, Parameter, Pass, PassResult, rewrite_nodes

MAX_WEIGHT = 1 << 22


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite grouped Conv nodes with kernel 1 whose dense weight has at most `max_elements`."""
    limit = int(parameters.get("max_elements", MAX_WEIGHT))

    def rule(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
        return _dense(node, editor, result, limit)

    return rewrite_nodes(model, PASS.id, {"Conv"}, rule)


def _dense(node: ir.Node, editor: Editor, result: PassResult, limit: int) -> tuple[ir.Value, str] | None:
    weight, group = constant_of(input_at(node, 1)), int(attribute(node, "group", 1))
    if weight is None or group == 1 or any(d != 1 for d in weight.shape[2:]):
        return None
    if weight.shape[1] == 1:
        result.skip(node, "it is depthwise")
        return None
    rows, columns = weight.shape[0] // group, weight.shape[1]
    if weight.size * group > limit:
        result.skip(node, f"the dense weight would have {weight.size * group} elements")
        return None
    dense = np.zeros((weight.shape[0], columns * group, *weight.shape[2:]), weight.dtype)
    for g in range(group):
        dense[g * rows : (g + 1) * rows, g * columns : (g + 1) * columns] = weight[g * rows : (g + 1) * rows]
    base = node.name or "Conv"
    attributes = {name: attribute(node, name) for name in node.attributes}
    attributes["group"] = 1
    inputs = [node.inputs[0], editor.constant(dense, f"{base}_dense"), *node.inputs[2:]]
    return editor.node(
        node, "Conv", inputs, shape_of(node.outputs[0]), attributes, hint=base
    ), f"dense Conv {list(dense.shape)}"


PASS = Pass(
    id="dense-grouped-conv",
    summary="grouped Conv of kernel 1 -> block-diagonal dense Conv",
    exactness=ROUNDING,
    apply=apply,
    parameters=(Parameter("max_elements", "largest dense weight; default 4194304"),),
)
