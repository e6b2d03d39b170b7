"""GridSample and AffineGrid: coordinates by arithmetic, values by Gather, any number of spatial axes.

Before -> after: GridSample -> positions, then per corner (2 per axis; 4 for cubic) one GatherElements on the flattened
image times a weight; outside corners are clipped, reflected or multiplied by zero. A constant grid is one MatMul
(``sample_constant``).

Exactness: the defining formula in the float type of the graph; summation order may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from onnx import TensorProto

from boardlift_transform.opset.families.sample_constant import sampling_matrix
from boardlift_transform.opset.families.shape import count_to
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import FLOATS, Step

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
CUBIC = -0.75
"""Coefficient of the cubic kernel that GridSample fixes."""


@dataclass(frozen=True)
class Image:
    """A flattened image and what sampling needs to know about it."""

    flat: str
    """[N, C, D1 * D2 * ...]."""
    sizes: tuple[str, ...]
    """Spatial sizes as scalars of the working float type."""
    kind: int
    """Working float type."""
    like: str
    """A value of the working type, for constants."""


@dataclass(frozen=True)
class Rule:
    """How positions outside are treated."""

    padding: str
    align: bool


@adapter("GridSample", 16, 20)
def grid_sample(step: Step) -> None:
    """Unnormalise, gather, weigh, add."""
    x, grid = step.x(0), step.x(1)
    mode = step.attr("mode", "linear")
    mode = _MODES.get(mode, mode)
    rule = Rule(step.attr("padding_mode", "zeros"), bool(step.attr("align_corners", 0)))
    kind, elem = step.need_elem(grid), step.need_elem(x)
    axes = step.rank(x) - 2
    if _by_matrix(step, mode, rule):
        return
    work = x if elem == kind or mode == "nearest" else step.cast(x, kind)
    image = flatten(step, work, x, axes, kind, grid)
    parts = step.split(grid, [1] * axes, axes + 1)
    flat = [step.reshape(p, [0, 1, -1]) for p in reversed(parts)]  # innermost axis comes first in the grid
    where = [position(step, p, s, rule, image) for p, s in zip(flat, image.sizes, strict=True)]
    if rule.padding != "zeros" and mode != "cubic":  # cubic moves its taps instead
        where = [inside(step, w, s, rule, image) for w, s in zip(where, image.sizes, strict=True)]
    if mode == "nearest":
        taken = take(step, image, [step.op("Round", [w]) for w in where], rule)
    else:
        taken = weigh(step, image, where, rule, cubic=mode == "cubic")
    shaped = shape_back(step, taken, x, grid, axes)
    if step.need_elem(shaped) != elem and elem not in FLOATS:
        shaped = step.cast(shaped, elem)
    step.op("Cast", [shaped], step.y(), to=elem)


def _by_matrix(step: Step, mode: str, rule: Rule) -> bool:
    """Constant places in a float32 image of fixed size: one MatMul; False where it is something else."""
    x, places, shape = step.x(0), step.const(step.x(1)), step.shape(step.x(0))
    if places is None or shape is None or None in shape[1:] or len(places) != 1:
        return False
    if step.need_elem(x) != TensorProto.FLOAT or places.dtype != np.float32:
        return False
    sizes = [d or 0 for d in shape[2:]]
    matrix = sampling_matrix(places.reshape(-1, len(sizes)), sizes, mode, rule.padding, rule.align)
    if matrix is None:
        return False
    flat = step.reshape(x, [0, 0, -1])
    made = step.op("MatMul", [flat, step.constant(matrix.astype(np.float32), hint="sampling")])
    step.reshape(made, [0, 0, *places.shape[1:-1]], step.y())
    return True


def flatten(step: Step, work: str, x: str, axes: int, kind: int, like: str) -> Image:
    """Image [N, C, -1] with its sizes."""
    shape = step.shape(x) or ()
    sizes = []
    for i in range(2, axes + 2):
        known = shape[i]
        if known is not None:
            sizes.append(step.constant(float(known), kind))
        else:
            sizes.append(step.cast(step.squeeze(step.dim(x, i), [0]), kind))
    return Image(step.reshape(work, [0, 0, -1]), tuple(sizes), kind, like)


def position(step: Step, value: str, size: str, rule: Rule, image: Image) -> str:
    """From -1..1 to element numbers."""
    one, half = step.constant(1.0, image.kind), step.constant(0.5, image.kind)
    if rule.align:
        last = step.op("Sub", [size, one])
        return step.op("Mul", [step.op("Mul", [step.op("Add", [value, one]), half]), last])
    return step.op("Mul", [step.op("Sub", [step.op("Mul", [step.op("Add", [value, one]), size]), one]), half])


def inside(step: Step, where: str, size: str, rule: Rule, image: Image) -> str:
    """Move positions into the image by clipping or by reflecting at its border."""
    zero, one = step.constant(0.0, image.kind), step.constant(1.0, image.kind)
    last = step.op("Sub", [size, one])
    if rule.padding == "reflection":
        half = step.constant(0.0 if rule.align else 0.5, image.kind)
        span = last if rule.align else size
        span = step.op("Max", [span, step.constant(1e-6, image.kind)])
        away = step.op("Abs", [step.op("Add", [where, half])])
        turns = step.op("Floor", [step.op("Div", [away, span])])
        rest = step.op("Sub", [away, step.op("Mul", [turns, span])])
        two = step.constant(2.0, image.kind)
        odd = step.op("Sub", [turns, step.op("Mul", [step.op("Floor", [step.op("Div", [turns, two])]), two])])
        back = step.op("Sub", [span, rest])
        mixed = step.op("Add", [rest, step.op("Mul", [odd, step.op("Sub", [back, rest])])])
        where = step.op("Sub", [mixed, half])
    return step.op("Min", [step.op("Max", [where, zero]), last])


def take(step: Step, image: Image, where: Sequence[str], rule: Rule) -> str:
    """Values at whole positions [N, 1, L] -> [N, C, L]; zero outside where the padding is zeros.

    Limits and the cast to int64 lie half an element off the whole positions: these are computed in int8 or int16 on a
    chip, where 6 may be 5.9998, which a cast would make 5.
    """
    zero, one = step.constant(0.0, image.kind), step.constant(1.0, image.kind)
    half, low = step.constant(0.5, image.kind), step.constant(-0.5, image.kind)
    place, good = "", ""
    for at, size in zip(where, image.sizes, strict=True):
        last = step.op("Sub", [size, one])
        held = step.op("Min", [step.op("Max", [at, zero]), last])
        if rule.padding == "zeros":
            beyond = step.op("Greater", [at, step.op("Sub", [size, half])])
            same = step.op("Not", [step.op("Or", [step.op("Less", [at, low]), beyond])])
            good = step.op("And", [good, same]) if good else same
        whole = step.cast(step.op("Add", [held, half]), TensorProto.INT64)
        wide = step.cast(size, TensorProto.INT64)
        place = step.op("Add", [step.op("Mul", [place, wide]), whole]) if place else whole
    picked = gather(step, image, place)
    if not good:
        return picked
    kind = step.need_elem(picked)
    if kind in FLOATS:
        return step.op("Mul", [picked, step.cast(good, kind)])
    return step.op("Where", [good, picked, step.constant(0, kind)])


def gather(step: Step, image: Image, place: str) -> str:
    """Elements [N, C, L] at flat positions [N, 1, L]."""
    flat = step.shape(image.flat)
    channels = flat[1] if flat is not None else None
    if channels != 1:
        ones = step.constant([1], np.int64)
        count = step.constant([channels], np.int64) if channels else step.dim(image.flat, 1)
        place = step.op("Expand", [place, step.op("Concat", [ones, count, ones], axis=0)])
    return step.op("GatherElements", [image.flat, place], axis=2)


def weigh(step: Step, image: Image, where: Sequence[str], rule: Rule, *, cubic: bool) -> str:
    """Sum over the corners around each position."""
    offsets = range(-1, 3) if cubic else range(2)
    spots: list[list[str]] = []
    weights: list[list[str]] = []
    for at, size in zip(where, image.sizes, strict=True):
        base = step.op("Floor", [at])
        part = step.op("Sub", [at, base])
        tapped = [base if o == 0 else step.op("Add", [base, step.constant(float(o), image.kind)]) for o in offsets]
        if cubic and rule.padding != "zeros":
            tapped = [inside(step, t, size, rule, image) for t in tapped]
        spots.append(tapped)
        weights.append(cubic_weights(step, part, image) if cubic else linear_weights(step, part, image))
    total = ""
    for corner in product(range(len(offsets)), repeat=len(where)):
        share = ""
        for axis, k in enumerate(corner):
            share = step.op("Mul", [share, weights[axis][k]]) if share else weights[axis][k]
        value = step.op("Mul", [take(step, image, [spots[a][k] for a, k in enumerate(corner)], rule), share])
        total = step.op("Add", [total, value]) if total else value
    return total


def linear_weights(step: Step, part: str, image: Image) -> list[str]:
    """1 - t and t."""
    return [step.op("Sub", [step.constant(1.0, image.kind), part]), part]


def cubic_weights(step: Step, part: str, image: Image) -> list[str]:
    """Cubic convolution at distances 1 + t, t, 1 - t, 2 - t, each a polynomial in t by Horner's rule."""
    a = CUBIC
    rows = [(a, -2 * a, a, 0.0), (a + 2, -(a + 3), 0.0, 1.0), (-(a + 2), 2 * a + 3, -a, 0.0), (-a, a, 0.0, 0.0)]
    made = []
    for row in rows:
        value = step.constant(row[0], image.kind)
        for factor in row[1:]:
            value = step.op("Add", [step.op("Mul", [value, part]), step.constant(factor, image.kind)])
        made.append(value)
    return made


def shape_back(step: Step, taken: str, x: str, grid: str, axes: int) -> str:
    """[N, C, L] -> [N, C, D1_out, ...]."""
    shape = step.shape(grid) or ()
    outer = shape[1 : axes + 1]
    if len(outer) == axes and None not in outer:
        return step.reshape(taken, [0, 0, *(d or 0 for d in outer)])
    front = step.slice(step.op("Shape", [x], at=step.target), [0], [2], [0])
    back = step.slice(step.op("Shape", [grid], at=step.target), [1], [axes + 1], [0])
    return step.op("Reshape", [taken, step.op("Concat", [front, back], axis=0)], at=step.target)


@adapter("AffineGrid", 20)
def affine_grid(step: Step) -> None:
    """Base grid, constant for a constant size, times theta."""
    size, theta = step.const(step.x(1)), step.x(0)
    kind = step.need_elem(theta)
    turned = step.op("Transpose", [theta], perm=[0, 2, 1])
    if size is None:
        base, spatial = base_at_run_time(step, kind)
        made = step.op("MatMul", [base, turned])
        whole = [step.constant([-1]), *spatial, step.constant([len(spatial)])]
        step.op("Reshape", [made, step.op("Concat", whole, axis=0)], step.y(), at=step.target)
        return
    sizes, align = [int(v) for v in size.ravel()[2:]], step.attr("align_corners", 0)
    lines = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1 for n in sizes]
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(sizes)], -1).reshape(-1, len(sizes) + 1)
    made = step.op("MatMul", [step.constant(points, kind), turned])
    step.reshape(made, [-1, *sizes, len(sizes)], step.y())


def base_at_run_time(step: Step, kind: int) -> tuple[str, list[str]]:
    """Base grid [points, axes + 1] for a size made at run time, and the spatial sizes as int64 [1] values."""
    axes = step.static_shape_from(step.x(0), 1)[0]
    one, two = step.constant(1.0, kind), step.constant(2.0, kind)
    spatial = [step.op("Gather", [step.x(1), step.constant([i + 2], np.int64)], axis=0) for i in range(axes)]
    full = step.op("Concat", spatial, axis=0)
    planes = []
    for i, size in enumerate(spatial):
        count, number = step.cast(size, kind), step.cast(count_to(step, size), kind)
        if step.attr("align_corners", 0):
            line = step.op("Div", [step.op("Mul", [number, two]), step.op("Sub", [count, one])])
        else:
            line = step.op("Div", [step.op("Add", [step.op("Mul", [number, two]), one]), count])
        line = step.reshape(step.op("Sub", [line, one]), [-1 if j == i else 1 for j in range(axes)])
        planes.append(step.reshape(step.op("Expand", [line, full]), [-1, 1]))
    planes.reverse()
    planes.append(step.op("Add", [step.op("Sub", [planes[0], planes[0]]), one]))
    return step.op("Concat", planes, axis=1), spatial
