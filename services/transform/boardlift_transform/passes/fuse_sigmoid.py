"""Write a Sigmoid that is spelt out as a Sigmoid.

Before -> After: `1 / (1 + exp(-x))`, as Div or Reciprocal, `-x` as Neg or Mul by -1 -> `Sigmoid(x)`.
Why: `exp(-x)` grows beyond all bounds where a Sigmoid is only 0. Calibrated, it leaves the table behind it no step in
between: in int16 the tool stops ("get_lut2layer_params"), in int8 the output is noise (a random network, signal to
noise simulated: int16 not built -> 48.7 dB, int8 -5.4 -> 14.4 dB).
Exactness: float rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, constant_of, shape_of
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult, rewrite_nodes


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite what divides one by one plus an exponential."""
    return rewrite_nodes(model, PASS.id, {"Div", "Reciprocal"}, _rewrite)


def _rewrite(node: ir.Node, editor: Editor, result: PassResult) -> tuple[ir.Value, str] | None:
    if node.op_type == "Div" and not _holds(node.inputs[0], 1.0):
        return None
    add = _maker(node.inputs[-1], "Add")
    exp = _maker(_other(add, 1.0), "Exp")
    turned = exp.inputs[0] if exp is not None else None
    neg = _maker(turned, "Neg")
    x = neg.inputs[0] if neg is not None else _other(_maker(turned, "Mul"), -1.0)
    out = node.outputs[0]
    if x is None or shape_of(x) is None or shape_of(x) != shape_of(out) or x.dtype != out.dtype:
        return None
    return editor.node(node, "Sigmoid", [x], shape_of(out), hint=node.name or "Sigmoid"), "Sigmoid"


def _maker(value: ir.Value | None, operator: str) -> ir.Node | None:
    made = value.producer() if value is not None else None
    return made if made is not None and made.op_type == operator else None


def _other(node: ir.Node | None, number: float) -> ir.Value | None:
    """The operand beside a constant that is this number everywhere."""
    if node is None:
        return None
    for value, other in (node.inputs, reversed(node.inputs)):
        if _holds(value, number):
            return other
    return None


def _holds(value: ir.Value | None, number: float) -> bool:
    array = constant_of(value)
    return array is not None and array.size > 0 and bool(np.all(array == number))


PASS = Pass(id="fuse-sigmoid", summary="1 / (1 + exp(-x)) -> Sigmoid", exactness=ROUNDING, apply=apply)
