"""Layers of the random networks, by family; each adds nodes behind ``net.x`` or says that it does not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from draw_network import Layer, Network, need
from onnx import TensorProto


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
    _norm(net, 1)
    net.then("Mul", net.const(net.rng.uniform(0.5, 1.5, (1, net.shape[1], 1, 1))))


def _norm(net: Network, axis: int) -> None:
    """Write a normalisation over one axis in one of the forms that exporters give it."""
    form = net.pick(("layer", "layer_mul", "rms", "l2"))
    x, eps = net.x, net.const(net.pick((1e-5, 1e-6, 1e-3)))
    if form == "l2":
        norm = net.op("ReduceL2", x, axes=[axis], keepdims=1)
        net.x = net.op("Mul", net.op("Div", x, net.op("Clip", norm, net.const(1e-6))), net.const(3.0))
        return
    if form != "rms":
        x = net.op("Sub", x, net.op("ReduceMean", x, axes=[axis], keepdims=1))
    square = net.op("Mul", x, x) if form == "layer_mul" else net.op("Pow", x, net.const(2.0))
    root = net.op("Sqrt", net.op("Add", net.op("ReduceMean", square, axes=[axis], keepdims=1), eps))
    net.x = net.op("Mul", x, net.op("Reciprocal", root)) if form == "layer_mul" else net.op("Div", x, root)


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


def activation(net: Network) -> None:
    """One of the usual activations, as an operator or written out."""
    kind = net.pick(("Relu", "Relu", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "Sigmoid", "Tanh", "Softplus",
                     "Softsign", "PRelu", "gelu", "tanh_gelu", "silu", "hard_swish", "mish", "relu6"))  # fmt: skip
    x = net.x
    if kind == "PRelu":
        slopes = (net.shape[1], *[1] * (len(net.shape) - 2)) if len(net.shape) == 4 else (net.shape[-1],)
        net.then("PRelu", net.const(net.rng.uniform(0.05, 0.5, slopes)))
    elif kind == "gelu":
        erf = net.op("Add", net.op("Erf", net.op("Div", x, net.const(math.sqrt(2)))), net.const(1.0))
        net.x = net.op("Mul", net.op("Mul", x, erf), net.const(0.5))
    elif kind == "tanh_gelu":
        cubic = net.op("Add", x, net.op("Mul", net.op("Pow", x, net.const(3.0)), net.const(0.044715)))
        tanh = net.op("Tanh", net.op("Mul", cubic, net.const(math.sqrt(2 / math.pi))))
        net.x = net.op("Mul", net.op("Mul", x, net.op("Add", tanh, net.const(1.0))), net.const(0.5))
    elif kind == "silu":
        net.x = net.op("Mul", x, net.op("Sigmoid", x))
    elif kind == "hard_swish":
        net.x = net.op("HardSwish", x)
    elif kind == "mish":
        net.x = net.op("Mul", x, net.op("Tanh", net.op("Softplus", x)))
    elif kind == "relu6":
        net.then("Clip", net.const(0.0), net.const(6.0))
    else:
        more = {"alpha": net.pick((0.01, 0.1, 0.3))} if kind in ("LeakyRelu", "Elu") else {}
        net.then(kind, **more)


def clip(net: Network) -> None:
    """Clip on one side or both, evenly or not."""
    low, high = net.pick(((-1.0, 1.0), (0.0, 1.0), (-0.5, 1.5), (None, 0.8), (-0.7, None)))
    net.then("Clip", "" if low is None else net.const(low), "" if high is None else net.const(high))


def element_wise(net: Network) -> None:
    """Add, Sub, Mul, Div, Max, Min with a constant of any shape that broadcasts, on either side."""
    kind = net.pick(("Add", "Sub", "Mul", "Div", "Max", "Min"))
    shape = [d if net.rng.random() < 0.5 else 1 for d in net.shape[1:]]
    value = net.rng.normal(0, 1, (1, *shape)) if net.rng.random() < 0.8 else net.rng.normal()
    if kind == "Div":
        value = 0.5 + np.abs(value)
    sides = [net.x, net.const(value)]
    if net.rng.random() < 0.3 and kind != "Div":
        sides.reverse()
    net.x = net.op(kind, *sides)


def unary(net: Network) -> None:
    """A function of each element."""
    kind = net.pick(("Abs", "Exp", "Sqrt", "Log", "Reciprocal", "Sin", "Cos", "Neg", "Pow", "Floor", "Sign", "Square",
                     "where", "cast"))  # fmt: skip
    if kind in ("Sqrt", "Log", "Reciprocal"):
        net.x = net.op(kind, net.positive(net.x))
    elif kind == "Pow":
        net.x = net.op("Pow", net.positive(net.x), net.const(net.pick((0.5, 1.5, 2.0))))
    elif kind == "Square":
        net.x = net.op("Mul", net.x, net.x)
    elif kind == "Exp":
        net.x = net.op("Exp", net.op("Clip", net.x, net.const(-4.0), net.const(2.0)))
    elif kind == "Floor":
        net.x = net.op("Div", net.op("Floor", net.op("Mul", net.x, net.const(4.0))), net.const(4.0))
    elif kind == "Sign":
        net.x = net.op("Mul", net.op("Sign", net.x), net.op("Abs", net.x))
    elif kind == "where":
        net.x = net.op("Where", net.op("Greater", net.x, net.const(0.2)), net.x,
                       net.op("Mul", net.x, net.const(0.25)))  # fmt: skip
    elif kind == "cast":
        whole = net.op("Cast", net.op("Mul", net.x, net.const(8.0)), to=TensorProto.INT32)
        net.x = net.op("Cast", whole, to=TensorProto.FLOAT)
    else:
        net.then(kind)


def join(net: Network) -> None:
    """Add, multiply or concatenate with an earlier tensor of the same shape."""
    same = [name for name, shape in net.seen[:-1] if shape == net.shape]
    need(bool(same))
    kind = net.pick(("Add", "Add", "Concat", "Mul", "Sub", "Max"))
    other = net.pick(same)
    net.x = net.op("Concat", net.x, other, axis=net.pick((1, -1))) if kind == "Concat" else net.op(kind, net.x, other)


def cut(net: Network) -> None:
    """Slice, Gather, Split and Concat, Pad, Tile, Expand along one axis."""
    axis = int(net.rng.integers(1, len(net.shape)))
    size = net.shape[axis]
    need(size >= 4)
    kind = net.pick(("slice", "step", "reverse", "gather", "swap", "pad", "tile", "roll"))
    ints = np.int64
    if kind in ("slice", "step", "reverse"):
        start, end, step = {"slice": (1, size, 1), "step": (0, size, 2), "reverse": (size - 1, -size - 1, -1)}[kind]
        net.then("Slice", *(net.const([v], ints) for v in (start, end, axis, step)))
    elif kind == "gather":
        net.then("Gather", net.const(net.rng.integers(0, size, 5), ints), axis=axis)
    elif kind == "pad":
        mode = net.pick(("constant", "reflect", "edge"))
        pads = np.zeros((2, len(net.shape)), ints)
        pads[:, axis] = net.rng.integers(0, 3, 2)
        net.then("Pad", net.const(pads.ravel(), ints), mode=mode)
    elif kind == "tile":
        net.then("Tile", net.const([2 if k == axis else 1 for k in range(len(net.shape))], ints))
    else:
        at = size // 2 if kind == "swap" else 1
        parts = net.op("Split", net.x, net.const([at, size - at], ints), outputs=2, axis=axis)
        net.x = net.op("Concat", *reversed(parts), axis=axis)


def reduce(net: Network) -> None:
    """A reduction over one axis or two, its result taken from what was reduced or kept."""
    kind = net.pick(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2"))
    axes = sorted(net.rng.choice(np.arange(1, len(net.shape)), int(net.rng.integers(1, len(net.shape))), False))
    whole = net.x
    if kind == "ReduceSum":
        made = net.op(kind, whole, net.const(axes, np.int64), keepdims=1)
        made = net.op("Mul", made, net.const(1 / math.prod(net.shape[a] for a in axes)))
    else:
        made = net.op(kind, whole, axes=[int(a) for a in axes], keepdims=1)
    net.x = net.op("Sub", whole, made) if net.rng.random() < 0.85 else made


def softmax(net: Network) -> None:
    """Softmax along any axis."""
    net.then("Softmax", axis=net.pick([-1, *range(1, len(net.shape))]))


def to_sequence(net: Network) -> None:
    """Turn a map into tokens."""
    need(len(net.shape) == 4 and net.shape[2] * net.shape[3] <= 64)
    net.then("Reshape", net.const([1, net.shape[1], -1], np.int64))
    net.then("Transpose", perm=[0, 2, 1])


def to_vector(net: Network) -> None:
    """Flatten, mean over tokens or the last token."""
    if len(net.shape) == 3 and net.rng.random() < 0.5:
        net.then("ReduceMean", axes=[1], keepdims=0)
        return
    need(math.prod(net.shape) <= 512)
    net.then("Flatten", axis=1)


def dense(net: Network) -> None:
    """Gemm of a vector, MatMul and Add of tokens."""
    width, out = net.shape[-1], net.pick((8, 16, 24, 40))
    if len(net.shape) == 2 and net.rng.random() < 0.7:
        net.then("Gemm", net.weight(out, width, fan_in=width), net.const(net.rng.normal(0, 0.3, out)), transB=1)
        return
    net.then("MatMul", net.weight(width, out, fan_in=width))
    net.then("Add", net.const(net.rng.normal(0, 0.3, out)))


def layer_norm(net: Network) -> None:
    """LayerNormalization of the last axis, as an operator or in primitives."""
    width = net.shape[-1]
    need(width >= 4)
    scale = net.const(net.rng.uniform(0.5, 1.5, width))
    if net.rng.random() < 0.3:
        net.then("LayerNormalization", scale, net.const(net.rng.normal(0, 0.2, width)), axis=-1)
        return
    _norm(net, -1)
    net.then("Mul", scale)


def attention(net: Network) -> None:
    """Self-attention of several heads, with or without a mask, behind a residual."""
    tokens, width = net.shape[1:]
    need(width % 4 == 0 and tokens <= 24)
    heads = net.pick((1, 2, 4))
    x, each = net.x, width // heads
    split = net.const([1, tokens, heads, each], np.int64)

    def project(perm: Sequence[int]) -> str:
        made = net.op("MatMul", x, net.weight(width, width, fan_in=width))
        return str(net.op("Transpose", net.op("Reshape", made, split), perm=list(perm)))

    query, key, value = project((0, 2, 1, 3)), project((0, 2, 3, 1)), project((0, 2, 1, 3))
    scores = net.op("Mul", net.op("MatMul", query, key), net.const(1 / math.sqrt(each)))
    if net.rng.random() < 0.4:
        deep = net.pick((-1e9, -1e4, float("-inf")))
        scores = net.op("Add", scores, net.const(np.triu(np.full((1, 1, tokens, tokens), deep), 1)))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), value)
    joined = net.op("Reshape", net.op("Transpose", mixed, perm=[0, 2, 1, 3]), net.const([1, tokens, width], np.int64))
    net.x = net.op("Add", x, net.op("MatMul", joined, net.weight(width, width, fan_in=width)))


def recurrent(net: Network) -> None:
    """GRU, LSTM or RNN over the tokens, in one direction or both."""
    tokens, width = net.shape[1:]
    need(tokens <= 8 and "recurrent" not in net.layers)  # the tool writes every step out
    kind = net.pick(("GRU", "LSTM", "RNN"))
    gates, hidden = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind], net.pick((8, 16))
    sides = net.pick((1, 1, 2))
    inputs = [net.weight(sides, gates * hidden, width, fan_in=width),
              net.weight(sides, gates * hidden, hidden, fan_in=hidden),
              net.const(net.rng.normal(0, 0.2, (sides, 2 * gates * hidden)))]  # fmt: skip
    more: dict[str, Any] = {"linear_before_reset": net.pick((0, 1))} if kind == "GRU" else {}
    net.then("Transpose", perm=[1, 0, 2])
    net.then(kind, *inputs, hidden_size=hidden, direction="bidirectional" if sides == 2 else "forward", **more)
    net.then("Transpose", perm=[2, 0, 1, 3])
    net.then("Reshape", net.const([1, tokens, sides * hidden], np.int64))


def conv1d(net: Network) -> None:
    """Conv over the tokens."""
    tokens, width = net.shape[1:]
    need(tokens >= 5)
    out, kernel = net.pick((8, 16)), net.pick((1, 3, 5))
    net.then("Transpose", perm=[0, 2, 1])
    net.then("Conv", net.weight(out, width, kernel, fan_in=width * kernel), net.const(net.rng.normal(0, 0.2, out)),
             pads=net.pick(([kernel // 2] * 2, [kernel - 1, 0])), strides=[net.pick((1, 1, 2))])  # fmt: skip
    net.then("Transpose", perm=[0, 2, 1])


def residual_dense(net: Network) -> None:
    """Two dense layers around an activation, behind a residual."""
    x, shape, width = net.x, net.shape, net.shape[-1]
    net.then("MatMul", net.weight(width, 2 * width, fan_in=width))
    net.shape = (*shape[:-1], 2 * width)
    activation(net)
    net.then("MatMul", net.weight(2 * width, width, fan_in=2 * width))
    net.x = net.op("Add", x, net.x)


def arg_max(net: Network) -> None:
    """ArgMax or ArgMin."""
    net.then(net.pick(("ArgMax", "ArgMin")), axis=net.pick((1, -1)), keepdims=net.pick((1, 1, 0)))


def top_k(net: Network) -> None:
    """The largest values of the last axis."""
    need(net.shape[-1] >= 4)
    net.x = net.op("TopK", net.x, net.const([3], np.int64), outputs=2, axis=-1)[0]


def head_sigmoid(net: Network) -> None:
    """Sigmoid as a last layer."""
    net.then("Sigmoid")


ANY: tuple[Layer, ...] = (activation, activation, clip, element_wise, unary, join, join, cut, reduce, softmax)
TOKENS: tuple[Layer, ...] = (dense, dense, layer_norm, residual_dense)
FAMILIES: dict[str, tuple[Any, tuple[Layer, ...]]] = {
    "map": (
        lambda rng: (1, int(rng.choice([1, 3, 4, 8])), *(int(v) for v in rng.integers(8, 17, 2))),
        (*ANY, conv, conv, conv, conv, depthwise, conv_transpose, pool, pool, global_pool, resize, batch_norm,
         instance_norm, channel_norm, rearrange, to_sequence, to_vector),
    ),
    "sequence": (
        lambda rng: (1, int(rng.integers(4, 13)), int(rng.choice([8, 12, 16, 24]))),
        (*ANY, *TOKENS, attention, attention, recurrent, conv1d, to_vector),
    ),
    "vector": (lambda rng: (1, int(rng.choice([12, 45, 64]))), (*ANY, *TOKENS, *TOKENS)),
}  # fmt: skip
"""Family -> draws the input's shape, layers."""
SHARES = (0.5, 0.3, 0.2)
"""How often a family is drawn."""
HEADS: tuple[Layer, ...] = (softmax, arg_max, top_k, head_sigmoid, reduce, clip)
"""What a network may end with."""
