"""Write GELU in the form that the tool computes by one table, or by the fewest products.

Before -> After: `x/2 (1 + Erf(x/sqrt 2))` in any order -> `Div, Erf, Add, Mul(x), Mul(1/2)`; the approximation by
`x/2 (1 + Tanh(a x + b x^3))` -> `x Sigmoid(x (2a + 2b x x))`, with 2a and 2b as a constant per place.
Why: the tool makes one table of the first form, in this order (PyTorch's older exporter's) only. All else is computed
entry by entry, each constant factor as a depthwise Conv, which a constant per place is not. One layer of 384 x 65 in a
block, O1, estimated, same cosines: Erf as PyTorch's newer exporter has it, int8 98 -> 51 us, int16 275 -> 96 us; Tanh
147 -> 89 us and 480 -> 160 us (235 us with one number as 2b).
Exactness: float rounding (1 + tanh(u) is 2 sigmoid(2u)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor, input_at, only_use, remove_unused, shape_of
from boardlift_transform.pass_result import node_label
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult
from boardlift_transform.polynomial import Polynomial, multiples_in, number_of, polynomial_in

NEAR = 1e-4


@dataclass(frozen=True)
class Gelu:
    """`x/2 (1 + f(argument))`, as it was found."""

    x: ir.Value
    argument: Polynomial
    """In x."""
    end: ir.Value
    """Its result."""
    order: str
    """Products from the sum to the end: `x` by x or its multiple, `c` by a number, `d` a division."""


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Rewrite every GELU around an Erf or a Tanh."""
    result, editor = PassResult(), Editor(model.graph, PASS.id)
    for node in [n for n in model.graph if n.op_type in ("Erf", "Tanh") and n.domain in ("", "ai.onnx")]:
        found = _find(node)
        if found is None:
            continue
        last = found.end.producer()
        if last is None or (node.op_type == "Erf" and _fits(node, found)):
            continue
        made = _erf(found, last, editor) if node.op_type == "Erf" else _sigmoid(found, last, editor)
        result.apply(node_label(node), f"GELU by {node.op_type}", "one table" if node.op_type == "Erf" else "Sigmoid")
        editor.replace(found.end, made)
    if result.applied:
        remove_unused(model.graph)
    return result


def _find(node: ir.Node) -> Gelu | None:
    """Go from f to the sum with 1, then over products until they are x/2 times the sum."""
    value, argument = node.outputs[0], node.inputs[0]
    factor, order, other = 1.0, "", None
    reader, shape = only_use(value), shape_of(argument)
    if shape is None or reader is None or reader.op_type != "Add" or number_of(_other(reader, value)) != 1:
        return None
    while reader is not None:
        value = reader.outputs[0]
        if shape_of(value) != shape:
            return None
        if other is not None:
            for x, scaled in multiples_in(other):
                inner = polynomial_in(x, argument)
                half = abs(factor * scaled - 0.5) < NEAR and shape_of(x) == shape
                if half and inner is not None and _is_gelu(node.op_type, inner):
                    return Gelu(x, inner, value, order)
        reader = only_use(value)
        if reader is None or reader.op_type not in ("Mul", "Div"):
            return None
        by = _other(reader, value)
        number = number_of(by)
        if number is not None and number != 0 and (reader.op_type == "Mul" or reader.inputs[0] is value):
            factor *= number if reader.op_type == "Mul" else 1 / number
            order += "c" if reader.op_type == "Mul" else "d"
        elif other is None and by is not None and reader.op_type == "Mul" and shape_of(by) == shape:
            other, order = by, order + "x"
        else:
            return None
    return None


def _other(node: ir.Node, value: ir.Value) -> ir.Value | None:
    return input_at(node, 1) if node.inputs[0] is value else node.inputs[0]


def _is_gelu(function: str, argument: Polynomial) -> bool:
    powers = {power for power, number in argument.items() if number != 0}
    if function == "Erf":
        return powers == {1} and abs(argument[1] - math.sqrt(0.5)) < NEAR
    return powers == {1, 3}


def _fits(node: ir.Node, found: Gelu) -> bool:
    """It is in the form of the table already."""
    maker = node.inputs[0].producer() if node.inputs[0] is not None else None
    return maker is not None and maker.op_type == "Div" and maker.inputs[0] is found.x and found.order == "xc"


def _erf(found: Gelu, last: ir.Node, editor: Editor) -> ir.Value:
    x, base = found.x, last.name or "gelu"

    def step(op: str, left: ir.Value, right: ir.Value | float) -> ir.Value:
        value = right if isinstance(right, ir.Value) else editor.constant(np.float32(right), f"{base}_{op}_by")
        return editor.node(last, op, [left, value], shape_of(x), hint=f"{base}_{op}")

    table = editor.node(last, "Erf", [step("Div", x, 1 / found.argument[1])], shape_of(x), hint=f"{base}_erf")
    return step("Mul", step("Mul", x, step("Add", table, 1.0)), 0.5)


def _sigmoid(found: Gelu, last: ir.Node, editor: Editor) -> ir.Value:
    x, base, shape = found.x, last.name or "gelu", shape_of(found.x) or ()
    wide = [1, 1, *shape[2:]] if len(shape) == 4 else [1] * len(shape)  # one number per place is no depthwise Conv
    cubic = editor.constant(np.full(wide, 2 * found.argument[3], np.float32), f"{base}_cubic")
    linear = editor.constant(np.full(wide, 2 * found.argument[1], np.float32), f"{base}_linear")
    value = editor.node(last, "Mul", [x, x], shape, hint=f"{base}_square")
    value = editor.node(last, "Mul", [value, cubic], shape, hint=f"{base}_times")
    value = editor.node(last, "Add", [value, linear], shape, hint=f"{base}_plus")
    value = editor.node(last, "Mul", [x, value], shape, hint=f"{base}_argument")
    value = editor.node(last, "Sigmoid", [value], shape, hint=f"{base}_sigmoid")
    return editor.node(last, "Mul", [x, value], shape, hint=base)


PASS = Pass(
    id="suit-gelu",
    summary="GELU by Erf or Tanh, however written -> the form of the tool's table, or x Sigmoid(...)",
    exactness=ROUNDING,
    apply=apply,
)
