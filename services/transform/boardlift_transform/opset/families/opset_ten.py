"""Operators that came with opset 11, written with those of opset 10.

Exactness: bit-exact, but for float running sums, whose order of addition differs.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from boardlift_transform.opset.families.compare import RUNS
from boardlift_transform.opset.families.cumulative import doubling
from boardlift_transform.opset.families.expansion import expand_body
from boardlift_transform.opset.families.negative_axes import from_front
from boardlift_transform.opset.families.shape import count_to
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import FLOATS, Step

T = TensorProto


@adapter("Clip", 11)
def clip_bounds(step: Step) -> None:
    """Constant bounds -> attributes; others by Max and Min."""
    x, low, high = step.x(0), step.x(1), step.x(2)
    known = [step.const(n) if n else None for n in (low, high)]
    ends = [None if k is None else float(k.ravel()[0]) for k in known]
    crossed = None not in ends and ends[0] > ends[1]  # type: ignore[operator]  # the older operator refuses these
    if all(k is not None for k, n in zip(known, (low, high), strict=True) if n) and not crossed:
        step.op("Clip", [x], step.y(), min=ends[0], max=ends[1])
        return
    bound = step.op("Max", [x, low], "" if high else step.y()) if low else x
    if high:
        step.op("Min", [bound, high], step.y())


@adapter("Pad", 11)
def pads_to_attribute(step: Step) -> None:
    """Constant pads and value -> attributes; small integers as doubles."""
    x, kind = step.x(0), step.need_elem(step.x(0))
    pads = [int(v) for v in step.need_const(step.x(1), "pads").ravel()]
    fill = float(step.need_const(step.x(2), "constant_value").ravel()[0]) if step.x(2) else 0.0
    mode = step.attr("mode", "constant")
    if kind in FLOATS:
        step.op("Pad", [x], step.y(), pads=pads, value=fill, mode=mode)
        return
    if kind in (T.INT64, T.UINT64):
        raise step.refuse(f"pads {step.type_name(x)}, which has no exact form below opset 11", "pad float32 or int32")
    wide = step.op("Pad", [step.cast(x, T.DOUBLE)], pads=pads, value=fill, mode=mode)
    step.cast(wide, kind, step.y())


@adapter("Gemm", 11)
def gemm_with_c(step: Step) -> None:
    """C may not be left out: a scalar zero."""
    step.same([step.x(0), step.x(1), step.x(2) or step.like(0, step.x(0))])


@adapter("Equal", 11)
def equal_types(step: Step) -> None:
    """Floats: neither less nor greater, and no NaN; small integers widened."""
    a, b = step.x(0), step.x(1)
    kind = step.need_elem(a)
    if kind in (T.BOOL, T.INT32, T.INT64):
        step.same()
    elif kind in RUNS:
        step.op("Equal", [step.cast(v, RUNS[kind]) for v in (a, b)], step.y())
    else:
        apart = step.op("Or", [step.op("Less", [a, b]), step.op("Greater", [a, b])])
        if kind in FLOATS:
            nan = step.op("Or", [step.op("IsNaN", [a]), step.op("IsNaN", [b])])
            apart = step.op("Or", [apart, nan])
        step.op("Not", [apart], step.y())


@adapter("CumSum", 11)
def running_sum(step: Step) -> None:
    """Sums by doubling steps."""
    doubling(step, "Add", 0)


@adapter("DynamicQuantizeLinear", 11)
def dynamic_quantize(step: Step) -> None:
    """The defining body."""
    expand_body(step)


@adapter("Round", 11)
def half_to_even(step: Step) -> None:
    """floor(x), plus one above the half, and at the half where the floor is odd."""
    x = step.x(0)
    one, half, two = (step.like(v, x) for v in (1.0, 0.5, 2.0))
    low = step.op("Floor", [x])
    part = step.op("Sub", [x, low])
    odd = step.op("Sub", [low, step.op("Mul", [step.op("Floor", [step.op("Mul", [low, half])]), two])])
    tie = step.op("Not", [step.op("Less", [part, half])])
    up = step.op("Or", [step.op("Greater", [part, half]), step.op("And", [tie, step.op("Greater", [odd, half])])])
    step.op("Where", [up, step.op("Add", [low, one]), low], step.y())


@adapter("Range", 11)
def counted(step: Step) -> None:
    """Start + i * delta."""
    start, limit, delta = (step.x(i) for i in range(3))
    kind = step.need_elem(start)
    ends = [step.cast(v, T.DOUBLE) for v in (start, limit, delta)]
    count = step.op("Ceil", [step.op("Div", [step.op("Sub", [ends[1], ends[0]]), ends[2]])])
    count = step.op("Max", [count, step.constant(0.0, T.DOUBLE)])
    numbers = count_to(step, step.reshape(step.cast(count, T.INT64), [1]))
    work = T.INT32 if kind == T.INT16 else kind
    scaled = step.op("Mul", [step.cast(numbers, work), step.cast(delta, work)])
    same = work == kind
    made = step.op("Add", [scaled, step.cast(start, work)], step.y() if same else "")
    if not same:
        step.cast(made, kind, step.y())


@adapter("GatherElements", 11)
def gather_elements(step: Step) -> None:
    """Gather from the flattened data at flat positions."""
    data, index = step.x(0), step.x(1)
    shape, given = step.static_shape(data), step.static_shape(index)
    axis = step.attr("axis", 0) % len(shape)
    strides = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
    grid = np.indices(given, dtype=np.int64)
    rest = sum((grid[i] * strides[i] for i in range(len(shape)) if i != axis), np.zeros(given, np.int64))
    front = from_front(step, step.cast(index, T.INT64), step.constant([shape[axis]], np.int64))
    flat = step.op("Add", [step.op("Mul", [front, step.constant(strides[axis], np.int64)]), step.constant(rest)])
    step.op("Gather", [step.reshape(data, [-1]), flat], step.y(), axis=0)


def flat_index(step: Step, index: str, shape: tuple[int, ...]) -> str:
    """Flat positions [.., 1] of multi-axis indices [.., depth]."""
    given = step.static_shape(index)
    depth, flat = given[-1], ""
    for i, part in enumerate(step.split(index, [1] * depth, len(given) - 1) if depth > 1 else [index]):
        at = from_front(step, part, step.constant([shape[i]], np.int64))
        flat = at if not flat else step.op("Add", [step.op("Mul", [flat, step.constant(shape[i], np.int64)]), at])
    return flat


@adapter("GatherND", 11)
def gather_nd(step: Step) -> None:
    """Gather rows of the data with the indexed axes flattened."""
    data, index = step.x(0), step.x(1)
    shape, given = step.static_shape(data), step.static_shape(index)
    depth = given[-1]
    rows = step.reshape(data, [-1, *shape[depth:]])
    flat = step.reshape(flat_index(step, index, shape), list(given[:-1]))
    step.op("Gather", [rows, flat], step.y(), axis=0)


@adapter("ScatterElements", 11)
def scatter_elements(step: Step) -> None:
    """The operator's old name; indices from the front."""
    data, index = step.x(0), step.x(1)
    axis = step.attr("axis", 0) % step.rank(data)
    front = from_front(step, index, step.dim(data, axis))
    step.op("Scatter", [data, front, step.x(2)], step.y(), axis=axis)


@adapter("ScatterND", 11)
def scatter_nd(step: Step) -> None:
    """Scatter into rows of the data with the indexed axes flattened."""
    data, index = step.x(0), step.x(1)
    shape, given = step.static_shape(data), step.static_shape(index)
    depth, count = given[-1], int(np.prod(given[:-1], dtype=np.int64))
    width = int(np.prod(shape[depth:], dtype=np.int64))
    rows = step.reshape(data, [-1, width])
    flat = step.reshape(flat_index(step, index, shape), [count, 1])
    spread = step.op("Expand", [flat, step.constant([count, width], np.int64)])
    made = step.op("Scatter", [rows, spread, step.reshape(step.x(2), [count, width])], axis=0)
    step.reshape(made, list(shape), step.y())


@adapter("BitShift", 11)
def bit_shift(step: Step) -> None:
    """Products and quotients of powers of two."""
    from boardlift_transform.opset.families.bits import shift_left, shift_right

    kind = step.need_elem(step.x(0))
    if kind == T.UINT64:
        raise step.refuse("shifts uint64, which has no exact form below opset 11", "use uint32")
    (shift_left if step.attr("direction") == "LEFT" else shift_right)(step, step.x(0), step.x(1), kind)
