"""Pools: dilations, ceil_mode and the window rule that came with version 22.

Windows that would start in the end padding are dropped since 22 and not before, so ceil_mode is taken away and the end
padding chosen such that the same windows remain. Padding of a MaxPool is minus infinity and that of an LpPool zero, so
more of it changes nothing; an AveragePool that counts its padding is written as a Conv with the right divisors.

Exactness: bit-exact for MaxPool; AveragePool and LpPool in Conv form differ by summation order only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step


@dataclass(frozen=True)
class Windows:
    """Geometry of a pool over known spatial sizes, one entry per spatial axis."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    counts: tuple[int, ...]
    """Number of windows."""

    def reach(self, axis: int) -> int:
        """Extent of a window."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def floor_ends(self) -> list[int]:
        """End padding with which exactly these windows come without ceil_mode, not below what is there."""
        made = []
        for i, count in enumerate(self.counts):
            need = (count - 1) * self.strides[i] + self.reach(i) - self.sizes[i] - self.begins[i]
            floor = (self.sizes[i] + self.begins[i] + self.ends[i] - self.reach(i)) // self.strides[i] + 1
            made.append(self.ends[i] if floor == count else max(need, 0))
        return made

    def divisors(self, include: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """How many elements each window averages."""
        total = np.ones([1] * len(self.sizes))
        for i, count in enumerate(self.counts):
            first = np.arange(count)[:, None] * self.strides[i] - self.begins[i]
            place = first + np.arange(self.kernel[i])[None, :] * self.dilations[i]
            low, high = (-self.begins[i], self.sizes[i] + self.ends[i]) if include else (0, self.sizes[i])
            inside = ((place >= low) & (place < high)).sum(1).astype(np.float64)
            total = total * inside.reshape([-1 if j == i else 1 for j in range(len(self.sizes))])
        return total


def windows(step: Step) -> Windows:
    """Windows of a pool, auto_pad and ceil_mode worked out; refuses unknown spatial sizes."""
    sizes = step.static_shape_from(step.x(0), 2)
    n = len(sizes)
    kernel = step.attr("kernel_shape")
    strides, dilations = step.attr("strides", [1] * n), step.attr("dilations", [1] * n)
    pads, auto = step.attr("pads", [0] * 2 * n), step.attr("auto_pad", "NOTSET")
    counts = []
    for i, size in enumerate(sizes):
        reach = (kernel[i] - 1) * dilations[i] + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-size // strides[i])
            total = max((count - 1) * strides[i] + reach - size, 0)
            pads[i] = total // 2 if auto == "SAME_UPPER" else total - total // 2
            pads[n + i] = total - pads[i]
        else:
            space = size + pads[i] + pads[n + i] - reach
            count = (-(-space // strides[i]) if step.attr("ceil_mode", 0) else space // strides[i]) + 1
            if step.attr("ceil_mode", 0) and (count - 1) * strides[i] >= size + pads[i]:
                count -= 1
        counts.append(count)
    return Windows(
        tuple(sizes), tuple(kernel), tuple(strides), tuple(dilations), tuple(pads[:n]), tuple(pads[n:]), tuple(counts)
    )


def may_start_in_padding(step: Step) -> bool:
    """Whether a window could start in the end padding, for some spatial size."""
    if not step.attr("ceil_mode", 0) or step.attr("auto_pad", "NOTSET") != "NOTSET":
        return False
    kernel = step.attr("kernel_shape")
    n = len(kernel)
    strides, dilations, pads = (
        step.attr(k, [v] * m) for k, v, m in (("strides", 1, n), ("dilations", 1, n), ("pads", 0, 2 * n))
    )
    return any(pads[n + i] + strides[i] > (kernel[i] - 1) * dilations[i] + 1 for i in range(n))


@adapter("MaxPool", 22)
def max_pool(step: Step) -> None:
    """Explicit end padding in place of ceil_mode where the old rule could add a window."""
    if not may_start_in_padding(step):
        step.same()
        return
    shape = windows(step)
    pads = [*shape.begins, *shape.floor_ends()]
    if any(p >= shape.kernel[i % len(shape.kernel)] for i, p in enumerate(pads)):
        raise NoForm("has a last window that lies wholly in its padding", "pad less than the kernel covers")
    step.same(drop=["ceil_mode"], pads=pads)


@adapter("AveragePool", 19, 22)
def average_pool(step: Step) -> None:
    """As it is where nothing new is used; else sums by a Conv of ones, over constant divisors."""
    dilated = any(d != 1 for d in step.attr("dilations", [1]))
    if not dilated and not may_start_in_padding(step):
        step.same(drop=["dilations"] if step.since == 19 else [])
        return
    if step.since == 22 and not may_start_in_padding(step):
        step.same()
        return
    shape = windows(step)
    include = bool(step.attr("count_include_pad", 0))
    divisors = shape.divisors(include)
    summed = window_sums(step, step.x(0), shape)
    kind = step.need_elem(step.x(0))
    step.op("Mul", [summed, step.constant((1.0 / divisors)[None, None], kind)], step.y())


def window_sums(step: Step, x: str, shape: Windows) -> str:
    """Sum over every window: all channels as a batch of one-channel images through a Conv of ones."""
    ones = step.constant(np.ones((1, 1, *shape.kernel)), step.need_elem(x))
    images = step.reshape(x, [-1, 1, *shape.sizes])
    summed = step.op(
        "Conv", [images, ones], kernel_shape=list(shape.kernel), strides=list(shape.strides),
        dilations=list(shape.dilations), pads=[*shape.begins, *shape.floor_ends()],
    )  # fmt: skip
    channels = (step.shape(x) or (None, None))[1]
    if channels is None:
        raise NoForm("needs a static channel count", "give input_shapes")
    return step.reshape(summed, [-1, channels, *shape.counts])


@adapter("LpPool", 18)
def lp_pool(step: Step) -> None:
    """ceil_mode -> end padding; dilations -> (sum |x|^p)^(1/p) by a Conv of ones."""
    dilated = any(d != 1 for d in step.attr("dilations", [1]))
    if not dilated and not step.attr("ceil_mode", 0):
        step.same(drop=["dilations", "ceil_mode"])
        return
    shape = windows(step)
    pads = [*shape.begins, *shape.floor_ends()]
    if not dilated and all(p < k for p, k in zip(pads, shape.kernel * 2, strict=True)):  # runtimes want no more
        step.same(drop=["dilations", "ceil_mode", "auto_pad"], pads=pads)
        return
    x, p = step.x(0), step.attr("p", 2)
    size = step.op("Abs", [x])
    power = size if p == 1 else step.op("Pow", [size, step.like(p, x)])
    summed = window_sums(step, power, shape)
    step.op("Pow", [summed, step.like(1.0 / p, x)], step.y())


@adapter("RoiAlign", 16)
def roi_align(step: Step) -> None:
    """Only the transformation that older versions had."""
    if step.attr("coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        raise NoForm(
            "shifts its boxes by half a pixel and lets them be smaller than one, which RoiAlign-10 does not",
            "export with aligned=False (output_half_pixel)",
        )
    step.same(drop=["coordinate_transformation_mode"])
