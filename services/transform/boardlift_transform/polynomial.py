"""What a node computes as a polynomial of another value, in whatever order it was written."""

from __future__ import annotations

import onnx_ir as ir

from boardlift_transform.edit_graph import constant_of, input_at, is_constant

DEGREE = 3
DEPTH = 12
Polynomial = dict[int, float]
"""Coefficient by power."""


def number_of(value: ir.Value | None) -> float | None:
    """The one number that a constant holds; None for everything else."""
    constant = constant_of(value)
    return float(constant.reshape(-1)[0]) if constant is not None and constant.size == 1 else None


def polynomial_in(x: ir.Value, value: ir.Value | None, depth: int = DEPTH) -> Polynomial | None:
    """`value` as a polynomial in `x` of degree 3 at most; None when it is none.

    Mul, Div by a number, Add, Sub, Neg, Identity and Pow by 1, 2, 3 are followed.
    """
    if value is x:
        return {1: 1.0}
    number = number_of(value)
    if number is not None:
        return {0: number}
    node = value.producer() if value is not None else None
    if node is None or depth == 0 or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in ("Identity", "Neg"):
        return _times(polynomial_in(x, node.inputs[0], depth - 1), {0: 1.0 if node.op_type == "Identity" else -1.0})
    if node.op_type not in ("Mul", "Div", "Add", "Sub", "Pow"):
        return None
    left, right = (polynomial_in(x, input_at(node, i), depth - 1) for i in (0, 1))
    if node.op_type == "Mul":
        return _times(left, right)
    if node.op_type in ("Add", "Sub"):
        return _plus(left, right, 1.0 if node.op_type == "Add" else -1.0)
    if left is None or right is None or set(right) != {0} or right[0] == 0:
        return None
    return _times(left, {0: 1 / right[0]}) if node.op_type == "Div" else _power(left, right[0])


def multiples_in(value: ir.Value) -> list[tuple[ir.Value, float]]:
    """The value itself and what it is a multiple of, through Mul and Div by numbers, each with its factor."""
    made, factor = [(value, 1.0)], 1.0
    while (node := value.producer()) is not None and node.op_type in ("Mul", "Div"):
        sides = [(node.inputs[0], input_at(node, 1)), (input_at(node, 1), node.inputs[0])]
        inner, number = next(((v, n) for v, o in sides if (n := number_of(o)) and not is_constant(v)), (None, 0.0))
        if inner is None or (node.op_type == "Div" and inner is not node.inputs[0]):
            break
        factor, value = factor * (number if node.op_type == "Mul" else 1 / number), inner
        made.append((value, factor))
    return made


def _plus(left: Polynomial | None, right: Polynomial | None, sign: float) -> Polynomial | None:
    if left is None or right is None:
        return None
    return {power: left.get(power, 0.0) + sign * right.get(power, 0.0) for power in {*left, *right}}


def _times(left: Polynomial | None, right: Polynomial | None) -> Polynomial | None:
    if left is None or right is None or max(left) + max(right) > DEGREE:
        return None
    made: Polynomial = {}
    for p, a in left.items():
        for q, b in right.items():
            made[p + q] = made.get(p + q, 0.0) + a * b
    return made


def _power(base: Polynomial, exponent: float) -> Polynomial | None:
    if exponent not in (1.0, 2.0, 3.0):
        return None
    made: Polynomial | None = base
    for _ in range(int(exponent) - 1):
        made = _times(made, base)
    return made
