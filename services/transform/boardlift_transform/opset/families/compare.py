"""Comparisons, Max, Min, Clip and Pow on the types that came late.

Max/Min of integers are selections (Where), so they are bit-exact for every width.
"""

from __future__ import annotations

from onnx import TensorProto, helper

from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import FLOATS, INTS, Step

T = TensorProto
RUNS: dict[int, int] = {T.INT8: T.INT32, T.INT16: T.INT32, T.UINT8: T.INT32, T.UINT16: T.INT32, T.UINT32: T.INT64}
"""Small integers and the type that runtimes have kernels for."""


def widened(step: Step, names: list[str]) -> list[str]:
    """Values cast to the nearest integer type that comparisons have kernels for."""
    return [step.cast(n, RUNS.get(step.elem(n), step.elem(n))) for n in names]


@adapter("GreaterOrEqual", 12, 16)
@adapter("LessOrEqual", 12, 16)
def or_equal(step: Step) -> None:
    """Greater or Equal: false for NaN, as it must be; a negated Less would not be."""
    strict = "Greater" if step.node.op_type == "GreaterOrEqual" else "Less"
    a, b = widened(step, [step.x(0), step.x(1)])
    if step.target < 11 and step.elem(a) in FLOATS:
        other = "Less" if strict == "Greater" else "Greater"
        ordered = [step.op(k, [a, b]) for k in (strict, other)]
        sane = step.op("Not", [step.op("Or", [step.op("IsNaN", [a]), step.op("IsNaN", [b])])])
        step.op("And", [sane, step.op("Not", [ordered[1]])], step.y())
        return
    step.op("Or", [step.op(strict, [a, b]), step.op("Equal", [a, b])], step.y())


def select(step: Step, kind: str, names: list[str], out: str) -> None:
    """Fold Max or Min of integers pairwise into Where."""
    elem = step.need_elem(names[0])
    wide = RUNS.get(elem, elem)
    best = step.cast(names[0], wide)
    for i, name in enumerate(names[1:], start=2):
        other = step.cast(name, wide)
        test = step.op("Greater" if kind == "Max" else "Less", [best, other])
        best = step.op("Where", [test, best, other], out if i == len(names) and wide == elem else "")
    if len(names) == 1 and wide == elem:
        step.op("Identity", [best], out)
    elif wide != elem:
        step.cast(best, elem, out)


@adapter("Max", 12)
@adapter("Min", 12)
def integer_extreme(step: Step) -> None:
    """Integers by Where; floats as they are."""
    if step.elem(step.x(0)) in INTS:
        select(step, step.node.op_type, [*step.node.input], step.y())
    else:
        step.same()


@adapter("Clip", 12)
def integer_clip(step: Step) -> None:
    """Min(Max(x, low), high) on integers."""
    x, low, high = step.x(0), step.x(1), step.x(2)
    if step.elem(x) not in INTS:
        step.same()
        return
    bound = step.fresh("bound") if low and high else step.y() if low else x
    if low:
        select(step, "Max", [x, low], bound)
        step.scope.types.setdefault(bound, helper.make_tensor_type_proto(step.elem(x), step.shape(x)))
    if high:
        select(step, "Min", [bound, high], step.y())
    elif not low:
        step.op("Identity", [x], step.y())


@adapter("Pow", 12)
def one_type(step: Step) -> None:
    """Both operands in one float type; integer bases with a small constant exponent are multiplied out exactly."""
    x, y = step.x(0), step.x(1)
    base = step.need_elem(x)
    if base in FLOATS:
        step.op("Pow", [x, step.cast(y, base)], step.y())
        return
    exponent = step.const(y)
    power = float(exponent) if exponent is not None and exponent.ndim == 0 else 0.0
    if power.is_integer() and 1 <= power <= 8:
        multiply_out(step, x, int(power))
        return
    wide = [step.cast(n, T.DOUBLE) for n in (x, y)]
    step.cast(step.op("Pow", wide), base, step.y())


def multiply_out(step: Step, x: str, exponent: int) -> None:
    """X ** n as a chain of products."""
    if exponent == 1:
        step.op("Identity", [x], step.y())
        return
    product = x
    for i in range(2, exponent + 1):
        product = step.op("Mul", [product, x], step.y() if i == exponent else "")


@adapter("Mod", 28)
def floored_mod(step: Step) -> None:
    """Floats with fmod = 0: the truncated remainder, moved by one divisor where the signs differ."""
    a, b = step.x(0), step.x(1)
    elem = step.elem(a)
    if step.attr("fmod", 0) or elem not in FLOATS:
        step.same()
        return
    zero = step.like(0.0, a)
    rest = step.op("Mod", [a, b], fmod=1)
    down, up = step.op("Less", [rest, zero]), step.op("Greater", [rest, zero])
    under, over = step.op("Less", [b, zero]), step.op("Greater", [b, zero])
    apart = step.op("Or", [step.op("And", [down, over]), step.op("And", [up, under])])
    moved = step.op("Where", [apart, step.op("Add", [rest, b]), rest])
    none = step.op("Not", [step.op("Or", [step.op("Or", [down, up]), step.op("IsNaN", [rest])])])
    signed = step.op("Where", [under, step.constant(-0.0, elem), zero])
    step.op("Where", [none, signed, moved], step.y())


@adapter("IsInf", 20)
def is_inf_half(step: Step) -> None:
    """float16 -> float32, where infinities stay infinities."""
    x = step.x(0)
    step.same([step.cast(x, T.FLOAT)] if step.elem(x) == T.FLOAT16 else None)


@adapter("Range", 27)
def range_half(step: Step) -> None:
    """float16 worked in float32, as stash_type asks for."""
    kinds = [step.elem(n) for n in step.node.input]
    if T.FLOAT16 not in kinds:
        step.same(drop=["stash_type"])
        return
    if step.attr("stash_type", 1) != T.FLOAT:
        raise step.refuse("accumulates in another type than float32", "leave stash_type at its default")
    wide = [step.cast(n, T.FLOAT) for n in step.node.input]
    step.cast(step.op("Range", wide), T.FLOAT16, step.y())
