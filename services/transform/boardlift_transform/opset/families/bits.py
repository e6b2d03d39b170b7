"""Bit operations on tensors, done with integer arithmetic in int64.

Exactness: bit-exact for every value of every integer type.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import BITS, SIGNED, UNSIGNED, Step

T = TensorProto
_LOW = 1 << 32


def words(step: Step, name: str) -> list[str]:
    """A value as int64 words of at most 32 bits, none negative, lowest first."""
    bits = BITS[step.need_elem(name)]
    wide = step.cast(name, T.INT64)
    if bits < 64:
        return [step.op("Mod", [wide, step.constant(1 << bits, np.int64)])]
    low = step.op("Mod", [wide, step.constant(_LOW, np.int64)])
    rest = step.op("Div", [step.op("Sub", [wide, low]), step.constant(_LOW, np.int64)])
    return [low, step.op("Mod", [rest, step.constant(_LOW, np.int64)])]


def digits(step: Step, word: str, width: int) -> str:
    """Bits of words as a new last axis, lowest first."""
    last = step.unsqueeze(word, [-1] if step.target > 10 else [step.rank(word)])
    shifted = step.op("Div", [last, step.constant(2 ** np.arange(width, dtype=np.int64))])
    return step.op("Mod", [shifted, step.constant(2, np.int64)])


def combine(step: Step, kind: str, a: str, b: str, width: int) -> str:
    """One word from two, bit by bit."""
    if step.target <= 10:
        n = max(step.rank(a), step.rank(b))
        a, b = (raise_rank(step, v, n) for v in (a, b))
    left, right = digits(step, a, width), digits(step, b, width)
    both = step.op("Mul", [left, right])
    if kind != "BitwiseAnd":
        total = step.op("Add", [left, right])
        twice = both if kind == "BitwiseOr" else step.op("Add", [both, both])
        both = step.op("Sub", [total, twice])
    valued = step.op("Mul", [both, step.constant(2 ** np.arange(width, dtype=np.int64))])
    axis = -1 if step.target > 10 else step.rank(valued) - 1
    return step.reduce("ReduceSum", valued, [axis], keepdims=0)


def raise_rank(step: Step, name: str, rank: int) -> str:
    """Leading axes of size 1, as broadcasting would add them."""
    missing = rank - step.rank(name)
    return step.unsqueeze(name, list(range(missing))) if missing else name


def join(step: Step, parts: list[str], elem: int, out: str) -> None:
    """Words back into the element type, the top bit read as a sign where it is one."""
    bits = BITS[elem]
    top = parts[-1]
    width = min(bits, 32)
    if elem in SIGNED or bits == 64:  # int64 arithmetic holds the 64-bit pattern; the Cast to uint64 keeps it
        high = step.op("Greater", [top, step.constant((1 << (width - 1)) - 1, np.int64)])
        top = step.op("Where", [high, step.op("Sub", [top, step.constant(1 << width, np.int64)]), top])
    if len(parts) == 2:
        top = step.op("Add", [step.op("Mul", [top, step.constant(_LOW, np.int64)]), parts[0]])
    step.op("Cast", [top], out, to=elem) if elem != T.INT64 else step.op("Identity", [top], out)


@adapter("BitwiseAnd", 18)
@adapter("BitwiseOr", 18)
@adapter("BitwiseXor", 18)
def bitwise(step: Step) -> None:
    """Take both apart into bits, combine, put together."""
    elem = step.need_elem(step.x(0))
    width = min(BITS[elem], 32)
    pairs = zip(words(step, step.x(0)), words(step, step.x(1)), strict=True)
    join(step, [combine(step, step.node.op_type, a, b, width) for a, b in pairs], elem, step.y())


@adapter("BitwiseNot", 18)
def bitwise_not(step: Step) -> None:
    """-1 - x; for unsigned types the largest value minus x."""
    elem = step.need_elem(step.x(0))
    top = (1 << BITS[elem]) - 1 if elem in UNSIGNED else -1
    step.op("Sub", [step.constant(top, elem), step.x(0)], step.y())


@adapter("BitShift", 28)
def bit_shift(step: Step) -> None:
    """Unsigned shifts inside the width are those of version 11; all others by powers of two."""
    x, y = step.x(0), step.x(1)
    elem = step.need_elem(x)
    bits, shift = BITS[elem], step.const(y)
    if elem in UNSIGNED and shift is not None and shift.size and int(shift.max()) < bits:
        step.same()
    elif elem == T.UINT64:
        shift_uint64(step)
    elif step.attr("direction") == "LEFT":
        shift_left(step, x, y, elem)
    else:
        shift_right(step, x, y, elem)


def amount(step: Step, y: str, limit: int) -> str:
    """Shift amounts as int64 in 0..limit; negative ones count as limit."""
    wide = step.cast(y, T.INT64)
    most = step.constant(limit, np.int64)
    wrong = step.op("Or", [step.op("Less", [wide, step.constant(0, np.int64)]), step.op("Greater", [wide, most])])
    return step.op("Where", [wrong, most, wide])


def shift_left(step: Step, x: str, y: str, elem: int) -> None:
    """X * 2^y modulo the width."""
    bits = BITS[elem]
    powers = [1 << i for i in range(min(bits, 63))] + ([-(1 << 63), 0] if bits == 64 else [0])
    factor = step.op("Gather", [step.constant(powers, np.int64), amount(step, y, bits)])
    product = step.op("Mul", [step.cast(x, T.INT64), factor])
    if elem == T.INT64:
        step.op("Identity", [product], step.y())
        return
    join(step, [step.op("Mod", [product, step.constant(1 << bits, np.int64)])], elem, step.y())


def shift_right(step: Step, x: str, y: str, elem: int) -> None:
    """floor(x / 2^y): the complement of a negative x is not negative, and truncation is then floor."""
    bits = BITS[elem]
    wide = step.cast(x, T.INT64)
    zero, one = step.constant(0, np.int64), step.constant(1, np.int64)
    negative = step.op("Less", [wide, zero])
    bare = step.op("Where", [negative, step.op("Sub", [step.constant(-1, np.int64), wide]), wide])
    by = amount(step, y, bits)
    powers = [1 << min(i, 62) for i in range(bits + 1)]
    part = step.op("Div", [bare, step.op("Gather", [step.constant(powers, np.int64), by])])
    if bits == 64:
        part = step.op("Where", [step.op("Greater", [by, step.constant(62, np.int64)]), zero, part])
    back = step.op("Sub", [step.op("Sub", [zero, part]), one])
    step.cast(step.op("Where", [negative, back, part]), elem, step.y() if elem != T.INT64 else "")
    if elem == T.INT64:
        step.op("Identity", [step.made[-1][0].output[0]], step.y())


def shift_uint64(step: Step) -> None:
    """Shift inside the width, and zero where the amount leaves it."""
    limit = step.constant(63, np.uint64)
    over = step.op("Greater", [step.x(1), limit])
    inside = step.op("Where", [over, limit, step.x(1)])
    shifted = step.op("BitShift", [step.x(0), inside], at=11, direction=step.attr("direction"))
    step.op("Where", [over, step.constant(0, np.uint64), shifted], step.y())
