"""Layers of the random networks for maps ``[1, C, H, W]``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from draw_element_layers import write_norm
from draw_network import Network, need


def conv(net: Network) -> None:
    """Conv of any kernel, stride, dilation, group and padding."""
    channels, height, width = net.shape[1:]
    kernel = [net.pick((1, 3, 3, 5)), net.pick((1, 3, 3, 5))]
    group = net.pick([g for g in (1, 1, 1, 2, 4) if channels % g == 0])
    out = group * net.pick((4, 8, 12))
    dilation = net.pick((1, 1, 1, 2)) if max(kernel) > 1 else 1
    pads = [int(net.rng.integers(0, k // 2 * dilation + 1)) for k in kernel * 2]
    need(min(height, width) > dilation * (max(kernel) - 1))
    inputs = [net.weight(out, channels // group, *kernel, fan_in=channels // group * math.prod(kernel))]
    if net.rng.random() < 0.7:
        inputs.append(net.const(net.rng.normal(0, 0.3, out)))
    stride = net.pick((1, 1, 2))
    net.then("Conv", *inputs, kernel_shape=kernel, group=group, strides=[stride] * 2, dilations=[dilation] * 2,
             pads=pads)  # fmt: skip


def depthwise(net: Network) -> None:
    """Conv per channel."""
    channels = net.shape[1]
    kernel = net.pick((3, 5, 7))
    need(min(net.shape[2:]) >= kernel)
    net.then("Conv", net.weight(channels, 1, kernel, kernel, fan_in=kernel**2), kernel_shape=[kernel] * 2,
             group=channels, strides=[net.pick((1, 1, 2))] * 2, pads=[kernel // 2] * 4)  # fmt: skip


def conv_transpose(net: Network) -> None:
    """ConvTranspose with stride, group and output padding."""
    channels = net.shape[1]
    group = net.pick([g for g in (1, 1, 2, channels) if channels % g == 0])
    kernel, stride = net.pick(((2, 2), (3, 2), (4, 2), (3, 1), (5, 3)))
    pad = int(net.rng.integers(0, kernel // 2 + 1))
    each = net.pick((1, 4, 8)) if group < channels else 1
    inputs = [net.weight(channels, each, kernel, kernel, fan_in=channels // group * kernel**2)]
    if net.rng.random() < 0.6:
        inputs.append(net.const(net.rng.normal(0, 0.3, group * each)))
    extra = int(net.rng.integers(0, stride)) if pad else 0
    net.then("ConvTranspose", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, group=group, pads=[pad] * 4,
             output_padding=[extra] * 2)  # fmt: skip


def pool(net: Network) -> None:
    """MaxPool or AveragePool, with uneven padding, ceil_mode and count_include_pad."""
    kernel, stride = net.pick((2, 3, 3, 5)), net.pick((1, 2, 2))
    need(min(net.shape[2:]) >= kernel)
    kind = net.pick(("MaxPool", "AveragePool"))
    more = {"count_include_pad": net.pick((0, 1))} if kind == "AveragePool" else {}
    pads = [int(net.rng.integers(0, kernel // 2 + 1)) for _ in range(4)]
    net.then(kind, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, ceil_mode=net.pick((0, 0, 1)), **more)


def global_pool(net: Network) -> None:
    """Global pool, flattened or as squeeze and excitation."""
    whole = net.x
    net.then(net.pick(("GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool")))
    if net.rng.random() < 0.5:
        net.then("Flatten", axis=1)
        return
    channels = net.shape[1]
    net.then("Conv", net.weight(4, channels, 1, 1, fan_in=channels))
    net.then("Relu")
    net.then("Conv", net.weight(channels, 4, 1, 1, fan_in=4))
    net.then(net.pick(("Sigmoid", "HardSigmoid")))
    net.x = net.op("Mul", whole, net.x)


def resize(net: Network) -> None:
    """Resize up or down, nearest or linear."""
    mode = net.pick(("nearest", "linear"))
    how = net.pick(("asymmetric", "half_pixel") if mode == "nearest" else ("half_pixel", "align_corners", "asymmetric"))
    scale = net.pick((2.0, 2.0, 0.5, 3.0))
    more: dict[str, Any] = {"nearest_mode": "floor"} if mode == "nearest" else {}
    net.then("Resize", "", net.const([1, 1, scale, scale]), mode=mode, coordinate_transformation_mode=how, **more)


def batch_norm(net: Network) -> None:
    """BatchNormalization with running figures."""
    channels = net.shape[1]
    rng = net.rng
    net.then("BatchNormalization", net.const(rng.uniform(0.5, 1.5, channels)), net.const(rng.normal(0, 0.3, channels)),
             net.const(rng.normal(0, 0.3, channels)), net.const(rng.uniform(0.3, 2, channels)))  # fmt: skip


def instance_norm(net: Network) -> None:
    """InstanceNormalization, or over groups of channels."""
    channels, height, width = net.shape[1:]
    need(height * width >= 4)
    groups = net.pick([g for g in (channels, channels, 2) if channels % g == 0])
    if groups < channels:
        net.then("Reshape", net.const([1, groups, -1], np.int64))
    net.then("InstanceNormalization", net.const(np.ones(groups)), net.const(np.zeros(groups)))
    if groups < channels:
        net.then("Reshape", net.const([1, channels, height, width], np.int64))


def channel_norm(net: Network) -> None:
    """Layer normalisation of a map over its channels, in primitives."""
    need(net.shape[1] >= 4)
    write_norm(net, 1)
    net.then("Mul", net.const(net.rng.uniform(0.5, 1.5, (1, net.shape[1], 1, 1))))


def rearrange(net: Network) -> None:
    """DepthToSpace, SpaceToDepth, Transpose."""
    kind = net.pick(("DepthToSpace", "SpaceToDepth", "Transpose"))
    if kind == "Transpose":
        net.then(kind, perm=[0, *(1 + net.rng.permutation(len(net.shape) - 1)).tolist()])
    elif kind == "DepthToSpace":
        need(len(net.shape) == 4 and net.shape[1] % 4 == 0)
        net.then(kind, blocksize=2, mode=net.pick(("DCR", "CRD")))
    else:
        need(len(net.shape) == 4 and net.shape[2] % 2 == net.shape[3] % 2 == 0)
        net.then(kind, blocksize=2)
