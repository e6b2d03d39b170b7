"""Let a mask that is computed hide no deeper than it must.

Before -> After, where everything that reads the result ends in a Softmax: `Where(keep, 0, -1e9)` and
`Where(keep, scores, -1e4)` -> -500; `Mul(1 - Cast(mask), -1e9)`, with whole numbers in front of the product -> -500.
Why: the sum of scores and mask is quantised with the mask's range: with -10000 no step is left for the scores
(`MASK_DROWNS_SCORES`). `tame-constants` does the same for masks that are constants.
Exactness: the comparison proves it: exp(-500) is 0 in float32. Rows whose tokens are all hidden come out differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, constant_of, input_at, is_constant, remove_unused
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult

DEPTH = np.float32(500)
MOVES = frozenset({"Reshape", "Transpose", "Identity", "Squeeze", "Unsqueeze", "Expand"})
WHOLE = frozenset(getattr(ir.DataType, n) for n in ("BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8"))


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Look at every Where and Mul with a deep constant."""
    result, editor = PassResult(), Editor(model.graph, PASS.id)
    for node in model.graph:
        if node.op_type not in ("Where", "Mul") or node.outputs[0].dtype != ir.DataType.FLOAT:
            continue
        for index in (1, 2) if node.op_type == "Where" else (0, 1):
            array = constant_of(input_at(node, index))
            if array is None or not array.size or not np.min(array) < -DEPTH or np.max(array) > DEPTH:
                continue
            other = input_at(node, 1 - index)
            if node.op_type == "Mul" and (other is None or is_constant(other) or not _is_whole(other)):
                continue
            if _ends_in_softmax(node.outputs[0]):
                low = editor.constant(np.maximum(array, -DEPTH), f"{node.name}_mask")
                node.replace_input_with(index, low)
                result.apply(node, f"mask of {float(np.min(array)):g}", f"{-DEPTH:g}")
    remove_unused(model.graph)
    return result


def _is_whole(value: ir.Value | None) -> bool:
    """True for whole numbers as floats, however they were combined."""
    array, maker = constant_of(value), value.producer() if value is not None else None
    if array is not None:
        return bool(np.all(np.isfinite(array)) and np.all(array == np.round(array)))
    if value is None or maker is None:
        return False
    if maker.op_type == "Cast":
        source = maker.inputs[0]
        return source is not None and (source.dtype in WHOLE or _is_whole(source))
    return maker.op_type in MOVES | {"Add", "Sub", "Mul"} and all(
        _is_whole(v) for v in (maker.inputs[:1] if maker.op_type in MOVES else maker.inputs)
    )


def _ends_in_softmax(value: ir.Value) -> bool:
    """True when all readers are a Softmax, or pass the value on to one as a summand or a choice."""
    readers = list(value.uses())
    if value.is_graph_output() or not readers:
        return False
    for use in readers:
        node = use.node
        if node.op_type == "Softmax":
            continue
        passes_on = node.op_type == "Add" or (node.op_type in MOVES and use.idx == 0)
        if node.op_type == "Where":
            passes_on = use.idx > 0
        if not passes_on or not _ends_in_softmax(node.outputs[0]):
            return False
    return True


PASS = Pass(
    id="soften-masks",
    summary="computed mask of -1e4, -1e9 in front of a Softmax -> -500",
    exactness=ROUNDING,
    apply=apply,
)
