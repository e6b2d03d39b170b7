"""Wide layers of the random networks for maps ``[1, C, H, W]``: rarer forms that perception networks have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from draw_network import Network, need


def group_norm(net: Network) -> None:
    """Normalisation over groups with scale and shift per channel, by InstanceNormalization or in primitives."""
    _, channels, height, width = net.shape
    groups = net.pick([g for g in (1, 2, 4) if channels % g == 0 and channels > g] or [channels])
    need(channels // groups * height * width >= 8)
    split = net.op("Reshape", net.x, net.const([0, groups, -1], np.int64))
    if net.rng.random() < 0.5:
        made = net.op("InstanceNormalization", split, net.const(np.ones(groups)), net.const(np.zeros(groups)))
    else:
        centred = net.op("Sub", split, net.op("ReduceMean", split, axes=[-1], keepdims=1))
        variance = net.op("ReduceMean", net.op("Mul", centred, centred), axes=[-1], keepdims=1)
        made = net.op("Div", centred, net.op("Sqrt", net.op("Add", variance, net.const(1e-5))))
    net.x = net.op("Reshape", made, net.const([1, channels, height, width], np.int64))
    net.then("Mul", net.const(net.rng.uniform(0.5, 1.5, (channels, 1, 1))))
    net.then("Add", net.const(net.rng.normal(0, 0.3, (channels, 1, 1))))


def conv_forms(net: Network) -> None:
    """Conv whose axes differ: kernel, stride, dilation; auto_pad; many groups; dead filters."""
    channels, height, width = net.shape[1:]
    kernel = [net.pick((1, 2, 3, 7)), net.pick((1, 3, 4, 5))]
    dilations = [net.pick((1, 1, 2, 3)), net.pick((1, 1, 2))]
    strides = [net.pick((1, 1, 2, 3)), net.pick((1, 1, 2))]
    reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    need(reach[0] < height and reach[1] < width)
    group = net.pick([g for g in (1, 1, 2, channels) if channels % g == 0])
    out = group * net.pick((1, 2, 3) if group == channels else (4, 6, 8))
    weight = net.rng.normal(0, 1 / math.sqrt(channels // group * math.prod(kernel)), (out, channels // group, *kernel))
    bias = net.rng.normal(0, 0.3, out)
    if net.rng.random() < 0.2:  # filters that training has killed
        weight[::3] = 0
        bias[::3] = net.pick((0.0, -1.0))
    more: dict[str, Any] = {"auto_pad": net.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))}
    if max(dilations) > 1 or net.rng.random() < 0.5:
        more = {"pads": [reach[0] // 2, reach[1] // 2, reach[0] - reach[0] // 2, reach[1] - reach[1] // 2]}
    net.then("Conv", net.const(weight), net.const(bias), kernel_shape=kernel, strides=strides, dilations=dilations,
             group=group, **more)  # fmt: skip


def conv_transpose_forms(net: Network) -> None:
    """ConvTranspose whose axes differ; uneven padding, dilation, auto_pad, output_shape."""
    channels, height, width = net.shape[1:]
    kernel = [net.pick((2, 3, 4)), net.pick((1, 2, 3, 4))]
    strides = [net.pick((1, 2, 2)), net.pick((1, 2, 3))]
    group = net.pick([g for g in (1, 1, 2, channels) if channels % g == 0])
    weight = net.weight(channels, net.pick((1, 3, 4)), *kernel, fan_in=channels // group * math.prod(kernel))
    more: dict[str, Any] = {"pads": [int(v) for v in net.rng.integers(0, 2, 4)]}
    form = net.rng.random()
    if form < 0.2:
        more = {"auto_pad": net.pick(("SAME_UPPER", "SAME_LOWER"))}
    elif form < 0.35:
        more = {"output_shape": [height * strides[0], width * strides[1]]}
    elif form < 0.5:
        more = {"dilations": [2, 1]}
    net.then("ConvTranspose", weight, kernel_shape=kernel, strides=strides, group=group, **more)


def pool_forms(net: Network) -> None:
    """Pools whose axes differ, with dilation or auto_pad; LpPool."""
    kernel, strides = [net.pick((1, 2, 3)), net.pick((2, 3, 4))], [net.pick((1, 2)), net.pick((1, 2, 3))]
    need(net.shape[2] >= 6 and net.shape[3] >= 8)
    kind = net.pick(("MaxPool", "MaxPool", "AveragePool", "LpPool"))
    more: dict[str, Any] = {"auto_pad": net.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))}
    if kind == "MaxPool" and net.rng.random() < 0.4:
        more = {"dilations": [2, 2]}
    net.then(kind, kernel_shape=kernel, strides=strides, **more)


def shuffle_forms(net: Network) -> None:
    """Pixel shuffle and unshuffle, channel shuffle, windows: Reshape and Transpose of five or six axes."""
    _, c, h, w = net.shape
    kind = net.pick(("shuffle", "unshuffle", "channels", "windows", "shift"))
    if kind == "shuffle":
        need(c % 4 == 0)
        shape, perm, end = [1, c // 4, 2, 2, h, w], [0, 1, 4, 2, 5, 3], [1, c // 4, 2 * h, 2 * w]
    elif kind == "unshuffle":
        need(h % 2 == 0 and w % 2 == 0)
        shape, perm, end = [1, c, h // 2, 2, w // 2, 2], [0, 1, 3, 5, 2, 4], [1, 4 * c, h // 2, w // 2]
    elif kind == "channels":
        need(c % 2 == 0 and c > 2)
        shape, perm, end = [1, 2, c // 2, h, w], [0, 2, 1, 3, 4], [1, c, h, w]
    elif kind == "windows":
        need(h % 4 == 0 and w % 4 == 0)
        shape, perm, end = [1, c, h // 4, 4, w // 4, 4], [0, 2, 4, 3, 5, 1], [1, h * w // 16, 16, c]
    else:  # as a shifted window: rolled along both axes
        need(min(h, w) > 3)
        for axis in (2, 3):
            size = net.shape[axis]
            parts = [net.op("Slice", net.x, *(net.const([v], np.int64) for v in (*span, axis)))
                     for span in ((2, size), (0, 2))]  # fmt: skip
            net.x = net.op("Concat", *parts, axis=axis)
        return
    net.then("Reshape", net.const(shape, np.int64))
    net.then("Transpose", perm=perm)
    net.then("Reshape", net.const(end, np.int64))


def resize_forms(net: Network) -> None:
    """Resize to sizes, by odd factors, along one axis, cubic, with every rounding of nearest."""
    _, channels, height, width = net.shape
    mode = net.pick(("nearest", "linear", "linear", "cubic"))
    how = net.pick(("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"))
    more: dict[str, Any] = {}
    if mode == "nearest":
        more = {"nearest_mode": net.pick(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))}
    size = [int(d * net.pick((0.5, 1, 1.5, 2, 2, 3, 4))) for d in (height, width)]
    if net.rng.random() < 0.5:
        target = ["", net.const([1, channels, *size], np.int64)]
    else:
        target = [net.const([1, 1, size[0] / height, size[1] / width])]
    net.then("Resize", "", *target, mode=mode, coordinate_transformation_mode=how, **more)


def grid_sample(net: Network) -> None:
    """GridSample at constant places, or at places that the network computes."""
    _, channels, height, width = net.shape
    rows, columns = np.meshgrid(np.linspace(-0.9, 0.9, 6), np.linspace(-0.8, 0.8, 5), indexing="ij")
    places = np.stack([columns, rows], -1)[None] + net.rng.normal(0, 0.05, (1, 6, 5, 2))
    grid = net.const(places)
    if net.rng.random() < 0.4:
        need(height == 6 or height * width <= 256)
        offset = net.op("GlobalAveragePool", net.x)
        offset = net.op("Conv", offset, net.weight(2, channels, 1, 1, fan_in=channels))
        offset = net.op("Transpose", net.op("Mul", net.op("Tanh", offset), net.const(0.1)), perm=[0, 2, 3, 1])
        grid = net.op("Add", grid, offset)
    net.then("GridSample", grid, mode=net.pick(("bilinear", "bilinear", "nearest")),
             padding_mode=net.pick(("zeros", "border")), align_corners=net.pick((0, 1)))  # fmt: skip


def spatial_softmax(net: Network) -> None:
    """Softmax over all places, and the expected place per channel (key points of a policy's camera)."""
    need(len(net.shape) == 4 and net.shape[1] >= 2 and net.shape[2] * net.shape[3] <= 256)
    _, channels, height, width = net.shape
    rows, columns = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    flat = net.op("Reshape", net.x, net.const([1, channels, height * width], np.int64))
    soft = net.op("Softmax", net.op("Div", flat, net.const(net.pick((1.0, 0.3)))), axis=-1)
    if net.rng.random() < 0.5:
        parts = [net.op("ReduceSum", net.op("Mul", soft, net.const(v.reshape(1, 1, -1))), net.const([-1], np.int64))
                 for v in (columns, rows)]  # fmt: skip
        net.x = net.op("Concat", *parts, axis=-1)
    else:
        net.x = net.op("MatMul", soft, net.const(np.stack([columns.ravel(), rows.ravel()], -1)))
    net.then("Reshape", net.const([1, 2 * channels], np.int64))


def coordinates(net: Network) -> None:
    """Channels that hold the place, joined to the map."""
    _, _, height, width = net.shape
    rows, columns = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    net.then("Concat", net.const(np.stack([rows, columns])[None]), axis=1)


def spatial_attention(net: Network) -> None:
    """Attention by a map of mean and maximum over the channels, as in CBAM."""
    need(net.shape[1] > 1 and min(net.shape[2:]) >= 3)
    parts = [net.op(kind, net.x, axes=[1], keepdims=1) for kind in ("ReduceMean", "ReduceMax")]
    weight = net.weight(1, 2, 3, 3, fan_in=18)
    gate = net.op("Sigmoid", net.op("Conv", net.op("Concat", *parts, axis=1), weight, pads=[1] * 4))
    net.then("Mul", gate)


def pyramid(net: Network) -> None:
    """Several pools beside each other, joined, as in SPPF; or pooled to few places and stretched back."""
    _, _, height, width = net.shape
    if net.rng.random() < 0.5:
        need(min(height, width) >= 5)
        made = [net.x]
        for _ in range(2):
            made.append(net.op("MaxPool", made[-1], kernel_shape=[5, 5], pads=[2] * 4))
        net.x = net.op("Concat", *made, axis=1)
        return
    need(height % 2 == 0 and width % 2 == 0)
    small = net.op("AveragePool", net.x, kernel_shape=[height // 2, width // 2], strides=[height // 2, width // 2])
    wide = net.op("Resize", small, "", "", net.const([1, net.shape[1], height, width], np.int64), mode="linear",
                  coordinate_transformation_mode=net.pick(("align_corners", "half_pixel")))  # fmt: skip
    net.then("Concat", wide, axis=1)


def volume(net: Network) -> None:
    """Five axes: a mean, maximum, Conv3d or transposition over frames that lie in the channels."""
    _, channels, height, width = net.shape
    need(channels % 4 == 0)
    frames = channels // 2
    net.then("Reshape", net.const([1, 2, frames, height, width], np.int64))
    kind = net.pick(("ReduceMean", "ReduceMax", "Transpose", "Mul", "Conv"))
    if kind in ("ReduceMean", "ReduceMax"):
        net.then(kind, axes=[net.pick((1, 2))], keepdims=0)
        return
    if kind == "Transpose":
        net.then("Transpose", perm=[0, 2, 1, 3, 4])
    elif kind == "Mul":
        net.then("Mul", net.const(net.rng.uniform(0.5, 1.5, (1, 2, frames, 1, 1))))
    else:
        net.then("Conv", net.weight(2, 2, 3, 1, 1, fan_in=6), pads=[1, 0, 0, 1, 0, 0])
    net.then("Reshape", net.const([1, -1, height, width], np.int64))


def patches(net: Network) -> None:
    """Conv of the patch's size, its places as tokens, a place embedding."""
    _, channels, height, width = net.shape
    need(height % 4 == 0 and width % 4 == 0)
    net.then("Conv", net.weight(16, channels, 4, 4, fan_in=16 * channels), kernel_shape=[4, 4], strides=[4, 4])
    places = height * width // 16
    net.then("Reshape", net.const([1, 16, places], np.int64))
    net.then("Transpose", perm=[0, 2, 1])
    if net.rng.random() < 0.5:
        net.x = net.op("Concat", net.const(net.rng.normal(0, 1, (1, 1, 16))), net.x, axis=1)
        places += 1
    net.then("Add", net.const(net.rng.normal(0, 0.5, (1, places, 16))))


def boxes(net: Network) -> None:
    """A detector's end: centres and sizes to corners, scores beside them."""
    need(len(net.shape) == 4 and net.shape[1] >= 6 and net.shape[2] * net.shape[3] <= 256)
    _, channels, height, width = net.shape
    flat = net.op("Reshape", net.x, net.const([1, channels, -1], np.int64))
    at = net.const([2, 2, channels - 4], np.int64)
    centre, size, score = net.op("Split", flat, at, outputs=3, axis=1)
    size = net.op("Mul", net.op("Exp", net.op("Clip", size, net.const(-3.0), net.const(2.0))), net.const(8.0))
    centre = net.op("Mul", net.op("Add", net.op("Sigmoid", centre), net.const(np.arange(height * width) % width)),
                    net.const(16.0))  # fmt: skip
    half = net.op("Mul", size, net.const(0.5))
    corners = [net.op("Sub", centre, half), net.op("Add", centre, half)]
    net.x = net.op("Concat", *corners, net.op("Sigmoid", score), axis=1)
