"""Leave out optional inputs that a node names as empty at its end.

Before -> After: `LSTM(x, W, R, B, "", "", "")` -> `LSTM(x, W, R, B)`.
Why: the tool dies (signal 11 while it optimises) on an LSTM whose initial states are named and empty; left out, they
start with zeros.
Exactness: bit-exact: the two forms mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.passes._base import BIT_EXACT, Pass, PassResult


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Shorten the inputs of every node, those in subgraphs included."""
    result = PassResult()
    for node in model.graph.all_nodes():
        count = len(node.inputs)
        while count and node.inputs[count - 1] is None:
            count -= 1
        if count < len(node.inputs):
            dropped = len(node.inputs) - count
            node.resize_inputs(count)
            result.apply(node, f"{node.op_type} with {dropped} empty inputs at its end", node.op_type)
    return result


PASS = Pass("trim-inputs", "empty inputs at a node's end -> none", BIT_EXACT, apply)
