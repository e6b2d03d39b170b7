"""Replace infinite and extreme constants by finite ones that give the same result, and find NaN.

Before -> After: mask `-inf` (or -3.4e38) in Add and Where -> -10000; a mask below -500 added in front of a Softmax
(-1e9, -65504, -1e4) -> -500; Clip bounds at the end of float32 -> no bound.
Why: one -inf in a mask sets the calibration threshold of its node and poisons everything after it; the tool builds
anyway. The sum with -1e9 has steps of 33000 in int16, and the scores are gone: one causal head of 10 tokens, signal to
noise 4.1 -> 31.8 dB (int8), 4.0 -> 39.2 dB (int16). Rows that are masked as a whole stay as they are.
Exactness: the comparison proves it: equal wherever a Softmax or a comparison follows; a finite result of -10000 itself
would show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, remove_unused
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, node_label
from boardlift_transform.refusal import Refusal

EXTREME = 1e30
TAME = np.float32(1e4)
MASK = np.float32(500)
_MOVES = frozenset({"Reshape", "Transpose", "Identity", "Squeeze", "Unsqueeze"})
_MASKING = frozenset({"Add", "Sub", "Where", "Max", "Min", "Pad", "Concat", "Expand", "Sum"})
_BOUNDING = frozenset(
    "Softmax Exp Sigmoid HardSigmoid Tanh Erf Clip Greater Less Equal ArgMax ArgMin TopK IsNaN IsInf Sign".split()
)


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Look at every float constant once."""
    result = PassResult()
    editor = Editor(model.graph, PASS.id)
    bad = []
    for name, value in list(model.graph.initializers.items()):
        if value.dtype != ir.DataType.FLOAT or value.const_value is None:
            continue
        array = np.asarray(value.const_value.numpy())
        largest = float(np.max(np.abs(array), initial=0.0))  # NaN stays NaN
        if np.isnan(largest):
            bad.append(f"{name} ({', '.join(node_label(use.node) for use in list(value.uses())[:3])})")
        elif largest > EXTREME:
            _tame(value, array, editor, result)
        elif largest > MASK:
            for use in [u for u in value.uses() if _is_mask(u.node, array)]:
                _soften(use.node, use.idx, value, array, editor, result)
    if bad:
        raise Refusal(
            "CONSTANT_NAN",
            f"{len(bad)} constants hold NaN: {', '.join(bad[:5])}",
            remedy="the training diverged or the export is broken: no compiler can repair that",
            metadata={"tensors": ",".join(bad[:10])},
        )
    remove_unused(model.graph)
    return result


def _tame(value: ir.Value, array: Any, editor: Editor, result: PassResult) -> None:
    finite: ir.Value | None = None
    for use in list(value.uses()):
        node = use.node
        if node.op_type == "Clip" and array.size == 1 and use.idx in (1, 2) and _is_open_end(array, use.idx):
            node.replace_input_with(use.idx, None)
            result.apply(node, f"bound {float(array.reshape(-1)[0]):g}", "no bound")
        elif node.op_type in _MASKING and _shows(node):
            result.skip(node, f"constant {value.name} is infinite and so is an output")
        elif _is_mask(node, array):
            _soften(node, use.idx, value, array, editor, result)
        elif node.op_type in _MASKING:
            if finite is None:
                tamed = np.where(np.abs(array) > EXTREME, np.sign(array) * TAME, array).astype(np.float32)
                finite = editor.constant(tamed, f"{value.name}_finite")
            node.replace_input_with(use.idx, finite)
            result.apply(node, f"constant {value.name} with {_count(array)} extreme values", f"+-{TAME:g}")
        else:
            result.skip(node, f"constant {value.name} holds {_count(array)} values beyond {EXTREME:g}")


def _is_mask(node: ir.Node, array: Any) -> bool:
    """True when the constant is added to what only a Softmax reads, and leaves something in every row."""
    if node.op_type != "Add" or array.ndim == 0 or np.max(array) > MASK:
        return False
    return not np.any(np.all(array < -MASK, axis=-1)) and _feeds_softmax(node)


def _feeds_softmax(node: ir.Node) -> bool:
    value = node.outputs[0]
    readers = [use.node for use in value.uses()]
    if value.is_graph_output() or not readers:
        return False
    return all(n.op_type == "Softmax" or (n.op_type in _MOVES and _feeds_softmax(n)) for n in readers)


def _soften(node: ir.Node, index: int, value: ir.Value, array: Any, editor: Editor, result: PassResult) -> None:
    low = editor.constant(np.maximum(array, -MASK).astype(np.float32), f"{value.name}_mask")
    node.replace_input_with(index, low)
    result.apply(node, f"mask {value.name} of {float(np.min(array)):g}", f"{-MASK:g}")


def _shows(node: ir.Node) -> bool:
    """True when an infinite result of the node reaches an output past everything that makes it finite."""
    pending, seen = [node], {node}
    while pending:
        current = pending.pop()
        if any(o.is_graph_output() for o in current.outputs):
            return True
        for use in (use for o in current.outputs for use in o.uses()):
            if use.node.op_type not in _BOUNDING and use.node not in seen:
                seen.add(use.node)
                pending.append(use.node)
    return False


def _is_open_end(array: Any, index: int) -> bool:
    return bool(array.reshape(-1)[0] < 0) == (index == 1)


def _count(array: Any) -> int:
    return int((np.abs(array) > EXTREME).sum())


PASS = Pass(
    id="tame-constants",
    summary="infinite and extreme constants -> finite ones; NaN refused",
    exactness=ROUNDING,
    apply=apply,
)
