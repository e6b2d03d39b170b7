"""Col2Im, DeformConv, SpaceToDepth, DepthToSpace: convolutions and rearrangements.

Exactness: rearrangements bit-exact; sums in another order than the reference's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.families.sample import Image, Rule, weigh
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step


@adapter("Col2Im", 18)
def col2im(step: Step) -> None:
    """ConvTranspose with one-hot kernels adds every block element at its place."""
    x = step.x(0)
    image = [int(v) for v in step.need_const(step.x(1), "image_shape").ravel()]
    block = [int(v) for v in step.need_const(step.x(2), "block_shape").ravel()]
    n, count = len(image), int(np.prod(block))
    strides, dilations = step.attr("strides", [1] * n), step.attr("dilations", [1] * n)
    pads = step.attr("pads", [0] * 2 * n)
    channels = step.static_shape_from(x, 1)[0] // count
    reach = [(block[i] - 1) * dilations[i] + 1 for i in range(n)]
    space = [image[i] + pads[i] + pads[n + i] - reach[i] for i in range(n)]
    grid = [s // t + 1 for s, t in zip(space, strides, strict=True)]
    rest = [s % t for s, t in zip(space, strides, strict=True)]
    kernel = np.tile(np.eye(count).reshape(count, 1, *block), (channels, 1, *[1] * n))
    columns = step.reshape(x, [0, channels * count, *grid])
    step.op(
        "ConvTranspose", [columns, step.constant(kernel, step.need_elem(x))], step.y(), group=channels,
        kernel_shape=block, strides=strides, dilations=dilations, pads=pads, output_padding=rest,
    )  # fmt: skip


@adapter("SpaceToDepth", 28)
def space_to_depth(step: Step) -> None:
    """Mode DCR is the old meaning; CRD is Reshape, Transpose, Reshape."""
    if step.attr("mode", "DCR") == "DCR":
        step.same(drop=["mode"])
        return
    x, b = step.x(0), step.attr("blocksize")
    channels, height, width = step.static_shape_from(x, 1)
    apart = step.reshape(x, [-1, channels, height // b, b, width // b, b])
    moved = step.op("Transpose", [apart], perm=[0, 1, 3, 5, 2, 4])
    step.reshape(moved, [-1, channels * b * b, height // b, width // b], step.y())


@adapter("DepthToSpace", 11)
def depth_to_space(step: Step) -> None:
    """Mode DCR is the only one below 11; CRD is Reshape, Transpose, Reshape."""
    if step.attr("mode", "DCR") == "DCR":
        step.same(drop=["mode"])
        return
    x, b = step.x(0), step.attr("blocksize")
    channels, height, width = step.static_shape_from(x, 1)
    apart = step.reshape(x, [-1, channels // (b * b), b, b, height, width])
    moved = step.op("Transpose", [apart], perm=[0, 1, 4, 2, 5, 3])
    step.reshape(moved, [-1, channels // (b * b), height * b, width * b], step.y())


@adapter("DeformConv", 19)
def deform_conv(step: Step) -> None:
    """Sample every kernel element at its own offset (bilinear, zero outside), mask, multiply by the kernel."""
    x, w, offset, bias, mask = (step.x(i) for i in range(5))
    n, channels, height, width = step.static_shape(x)
    out_channels, per_group, kh, kw = step.static_shape(w)
    if step.rank(x) != 4:
        raise NoForm("has other than two spatial axes", "use the two-dimensional form")
    oh, ow = step.static_shape(offset)[2:]
    group, offsets = step.attr("group", 1), step.attr("offset_group", 1)
    spots, count = kh * kw, oh * ow
    kind = step.need_elem(x)
    base = base_positions(step, (kh, kw), (oh, ow))
    moves = step.reshape(offset, [n * offsets, spots, 2, count])
    planes = step.split(moves, [1, 1], 2)
    where = []
    for plane, start in zip(planes, base, strict=True):
        flat = step.op("Add", [step.squeeze(plane, [2]), step.constant(start, kind)])
        where.append(step.reshape(flat, [n * offsets, 1, spots * count]))
    flat_image = step.reshape(x, [n * offsets, channels // offsets, height * width])
    sizes = (step.constant(float(height), kind), step.constant(float(width), kind))
    image = Image(flat_image, sizes, kind, x)
    value = weigh(step, image, where, Rule("zeros", True), cubic=False)
    if mask:
        value = step.op("Mul", [value, step.reshape(mask, [n * offsets, 1, spots * count])])
    columns = step.reshape(value, [n, group, per_group * spots, count])
    kernel = step.reshape(w, [group, out_channels // group, per_group * spots])
    made = step.reshape(step.op("MatMul", [kernel, columns]), [n, out_channels, oh, ow], "" if bias else step.y())
    if bias:
        step.op("Add", [made, step.reshape(bias, [1, -1, 1, 1])], step.y())


def base_positions(step: Step, kernel: tuple[int, int], out: tuple[int, int]) -> list[npt.NDArray[np.float64]]:
    """Row and column of every kernel element for every output, without offsets: each [spots, outputs]."""
    strides, dilations, pads = step.attr("strides", [1, 1]), step.attr("dilations", [1, 1]), step.attr("pads", [0] * 4)
    made: list[npt.NDArray[np.float64]] = []
    for i in range(2):
        inner = np.arange(kernel[i]) * dilations[i]
        outer = np.arange(out[i]) * strides[i] - pads[i]
        spread = inner[:, None, None, None] + outer[None, None, :, None]
        if i == 1:
            spread = inner[None, :, None, None] + outer[None, None, None, :]
        whole = np.broadcast_to(spread, (*kernel, *out)).astype(np.float64)
        made.append(whole.reshape(kernel[0] * kernel[1], out[0] * out[1]))
    return made
