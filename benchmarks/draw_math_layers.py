"""Wide layers of the random networks that fit any shape: rarer functions, masks, scatters, values of uneven size."""

from __future__ import annotations

import math

import numpy as np
from draw_network import Network, need
from onnx import TensorProto


def rare_unary(net: Network) -> None:
    """A function of each element that exporters write now and then."""
    kind = net.pick(("Ceil", "Round", "Erf", "Atan", "Asinh", "Sinh", "Cosh", "Celu", "ThresholdedRelu", "Shrink",
                     "Mod", "Asin", "Acos", "Atanh", "Acosh", "Tan", "log1p", "sqrt_abs", "cube", "log_sigmoid",
                     "sigmoid_raw", "gumbel", "atan2"))  # fmt: skip
    x = net.x
    if kind in ("Ceil", "Round"):
        net.x = net.op("Mul", net.op(kind, net.op("Mul", x, net.const(5.0))), net.const(0.2))
    elif kind in ("Asin", "Acos", "Atanh"):
        net.x = net.op(kind, net.op("Mul", net.op("Tanh", x), net.const(0.9)))
    elif kind in ("Sinh", "Cosh"):
        net.x = net.op(kind, net.op("Clip", x, net.const(-2.0), net.const(2.0)))
    elif kind == "Acosh":
        net.x = net.op(kind, net.op("Add", net.op("Abs", x), net.const(1.2)))
    elif kind == "Tan":
        net.x = net.op(kind, net.op("Tanh", x))
    elif kind == "log1p":
        net.x = net.op("Mul", net.op("Sign", x), net.op("Log", net.op("Add", net.op("Abs", x), net.const(1.0))))
    elif kind == "sqrt_abs":
        net.x = net.op("Mul", net.op("Sign", x), net.op("Sqrt", net.op("Abs", x)))
    elif kind == "cube":
        net.x = net.op("Pow", net.op("Tanh", x), net.const(3.0))
    elif kind == "log_sigmoid":
        net.x = net.op("Neg", net.op("Softplus", net.op("Neg", x)))
    elif kind == "sigmoid_raw":
        net.x = net.op("Div", net.const(1.0), net.op("Add", net.op("Exp", net.op("Neg", x)), net.const(1.0)))
    elif kind == "gumbel":
        net.x = net.op("Log", net.op("Add", net.op("Sigmoid", x), net.const(1e-3)))
    elif kind == "atan2":
        net.x = net.op("Atan", net.op("Div", x, net.positive(net.op("Sin", x))))
    elif kind == "Mod":
        net.x = net.op("Mod", x, net.const(0.7), fmod=1)
    elif kind == "Shrink":
        net.then(kind, lambd=0.3, bias=net.pick((0.0, 0.3)))
    else:
        more_alpha = {"alpha": net.pick((0.2, 0.5, 1.5))} if kind in ("Celu", "ThresholdedRelu") else {}
        net.then(kind, **more_alpha)


def rare_reduce(net: Network) -> None:
    """A reduction that others do not have; LogSoftmax, norms over the whole."""
    axis = net.pick((-1, 1))
    need(net.shape[axis] > 1)
    x = net.x
    kind = net.pick(("ReduceL1", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd", "LogSoftmax", "LpNormalization",
                     "var", "whole", "minmax", "softmin", "Hardmax"))  # fmt: skip
    if kind in ("LogSoftmax", "LpNormalization", "Hardmax"):
        net.then(kind, axis=axis)
    elif kind == "var":
        centred = net.op("Sub", x, net.op("ReduceMean", x, axes=[axis], keepdims=1))
        net.x = net.op("Div", x, net.op("Add", net.op("Sqrt", net.op("ReduceMean", net.op("Mul", centred, centred),
                       axes=[axis], keepdims=1)), net.const(0.1)))  # fmt: skip
    elif kind == "whole":
        axes = list(range(1, len(net.shape)))
        net.x = net.op("Sub", x, net.op("ReduceMean", x, axes=axes, keepdims=1))
    elif kind == "minmax":
        low, high = (net.op(k, x, axes=[axis], keepdims=1) for k in ("ReduceMin", "ReduceMax"))
        net.x = net.op("Div", net.op("Sub", x, low), net.op("Add", net.op("Sub", high, low), net.const(0.1)))
    elif kind == "softmin":
        net.x = net.op("Softmax", net.op("Neg", net.op("Abs", x)), axis=axis)
    else:
        source = net.op("Tanh", x) if kind == "ReduceProd" else x
        net.x = net.op("Sub", x, net.op(kind, source, axes=[axis], keepdims=1))


def mask(net: Network) -> None:
    """Where and boolean operators: constant masks, ranges, what two comparisons say."""
    x = net.x
    kind = net.pick(("constant", "range", "or", "xor", "not", "triangle", "times", "max"))
    low, high = net.op("Less", x, net.const(-0.4)), net.op("Greater", x, net.const(0.5))
    if kind == "constant":
        keep = net.const(net.rng.random(net.shape) < 0.7, np.bool_)
        net.x = net.op("Where", keep, x, net.const(net.pick((0.0, -1.0))))
    elif kind == "range":
        inside = net.op("And", net.op("Not", low), net.op("Not", high))
        net.x = net.op("Where", inside, x, net.op("Mul", x, net.const(0.1)))
    elif kind in ("or", "xor"):
        net.x = net.op("Where", net.op(kind.capitalize(), low, high), net.const(0.5), x)
    elif kind == "not":
        net.x = net.op("Where", net.op("Not", high), net.op("Tanh", x), x)
    elif kind == "triangle":
        need(len(net.shape) == 3 or len(net.shape) == 4)
        net.then("Trilu", upper=net.pick((0, 1)))
    elif kind == "times":
        net.x = net.op("Mul", x, net.op("Cast", net.op("GreaterOrEqual", x, net.const(0.0)), to=TensorProto.FLOAT))
    else:
        top = net.op("ReduceMax", x, axes=[-1], keepdims=1)
        net.x = net.op("Where", net.op("Equal", x, top), x, net.op("Mul", x, net.const(0.5)))


def cumulate(net: Network) -> None:
    """CumSum, as steps that are added up."""
    axis = net.pick((1, -1))
    need(net.shape[axis] <= 32)
    net.then("CumSum", net.const(axis, np.int64), exclusive=net.pick((0, 0, 1)), reverse=net.pick((0, 0, 1)))
    net.then("Mul", net.const(1 / math.sqrt(net.shape[axis])))


def uneven(net: Network) -> None:
    """Branches of very different size joined: added, or beside each other."""
    width = net.shape[-1]
    big = net.op("MatMul", net.x, net.weight(width, width, fan_in=width))
    big = net.op("Mul", big, net.const(net.pick((0.01, 20.0, 100.0))))
    if net.rng.random() < 0.5:
        net.x = net.op("Add", net.x, big)
        return
    net.x = net.op("Concat", net.x, big, axis=-1)
    if net.rng.random() < 0.5:
        net.then("MatMul", net.weight(2 * width, width, fan_in=2 * width))


def rescale(net: Network) -> None:
    """Very large or very small numbers on the way, a dead or constant channel."""
    kind = net.pick(("large", "small", "dead", "constant", "offset"))
    axis = 1 if len(net.shape) == 4 else len(net.shape) - 1
    wide = [1] * len(net.shape)
    wide[axis] = net.shape[axis]
    factor = np.ones(wide)
    if kind in ("large", "small"):
        size = 1e4 if kind == "large" else 1e-4
        net.then("Mul", net.const(size))
        net.then("Add", net.const(net.rng.normal(0, size, wide)))
        net.then("Div", net.const(size))
        return
    if kind == "offset":  # a temperature beside radians
        net.then("Add", net.const(net.pick((30.0, -50.0))))
        net.then("Sub", net.const(net.rng.normal(0, 1, wide)))
        return
    factor.ravel()[::2] = 0.0
    net.then("Mul", net.const(factor))
    if kind == "constant":
        net.then("Add", net.const((1 - factor) * 0.7))


def pick_elements(net: Network) -> None:
    """GatherElements, GatherND, ScatterElements, ScatterND, OneHot at constant places or at the largest."""
    size = net.shape[-1]
    need(size >= 4)
    kind = net.pick(("elements", "scatter", "scatter_nd", "nd", "largest", "one_hot", "compress"))
    rng, ints = net.rng, np.int64
    if kind == "elements":
        net.then("GatherElements", net.const(rng.integers(0, size, (*net.shape[:-1], 3)), ints), axis=-1)
    elif kind == "scatter":
        places = net.const(np.stack([rng.permutation(size)[:2] for _ in range(math.prod(net.shape[:-1]))])
                           .reshape(*net.shape[:-1], 2), ints)  # fmt: skip
        net.then("ScatterElements", places, net.const(rng.normal(0, 1, (*net.shape[:-1], 2))), axis=-1)
    elif kind == "scatter_nd":
        need(net.shape[1] >= 3)
        net.then("ScatterND", net.const([[0, 1], [0, 0]], ints), net.const(rng.normal(0, 1, (2, *net.shape[2:]))))
    elif kind == "nd":
        need(net.shape[1] >= 3)
        net.then("GatherND", net.const([[0, 2], [0, 0], [0, 1]], ints))
        net.then("Unsqueeze", net.const([0], ints))
    elif kind == "largest":
        net.x = net.op("GatherElements", net.x, net.op("ArgMax", net.x, axis=-1, keepdims=1), axis=-1)
    elif kind == "one_hot":
        index = net.op("ArgMax", net.x, axis=-1, keepdims=0)
        hot = net.op("OneHot", index, net.const([size], ints), net.const([0.0, 1.0]), axis=-1)
        net.x = net.op("Mul", net.x, net.op("Sub", net.const(2.0), hot))
    else:
        net.then("Compress", net.const(np.arange(size) % 3 != 1, np.bool_), axis=len(net.shape) - 1)


def pad_forms(net: Network) -> None:
    """Pad several axes, by a value, or less than nothing."""
    need(len(net.shape) >= 3 and min(net.shape[2:]) >= 4)
    pads = np.zeros((2, len(net.shape)), np.int64)
    pads[:, 2:] = net.rng.integers(-1, 3, (2, len(net.shape) - 2))
    mode = net.pick(("constant", "constant", "reflect", "edge"))
    if mode != "constant":
        pads = np.abs(pads)
    value = [net.const(net.pick((0.0, -1.0, 1e4)))] if mode == "constant" else []
    net.then("Pad", net.const(pads.ravel(), np.int64), *value, mode=mode)


def slice_forms(net: Network) -> None:
    """Slice of several axes at once, with steps and negative ends; Split in three; a row taken out and put back."""
    kind = net.pick(("many", "split", "row"))
    ints = np.int64
    if kind == "many":
        axes = list(range(1, len(net.shape)))
        need(all(net.shape[a] >= 4 for a in axes))
        ends = [net.pick((-1, 2**31 - 1)) for _ in axes]
        net.then("Slice", net.const([net.pick((0, 1, -3)) for _ in axes], ints), net.const(ends, ints),
                 net.const(axes, ints), net.const([net.pick((1, 1, 2)) for _ in axes], ints))  # fmt: skip
    elif kind == "split":
        size = net.shape[-1]
        need(size >= 6)
        parts = net.op("Split", net.x, net.const([2, 3, size - 5], ints), outputs=3, axis=-1)
        net.x = net.op("Concat", net.op("Tanh", parts[0]), parts[2], net.op("Mul", parts[1], net.const(2.0)), axis=-1)
    else:
        row = net.op("Gather", net.x, net.const(0, ints), axis=1)
        net.then("Add", net.op("Unsqueeze", row, net.const([1], ints)))


def product(net: Network) -> None:
    """Einsum and MatMul in rarer forms: a constant on the left, outer products, one with itself."""
    kind = net.pick(("left", "gram", "einsum", "bilinear", "chain"))
    size = net.shape[-1]
    need(size <= 64)
    if kind == "left":
        need(len(net.shape) >= 3)
        rows = net.shape[-2]
        net.x = net.op("MatMul", net.weight(5, rows, fan_in=rows), net.x)
    elif kind == "gram":
        need(len(net.shape) == 3)
        net.x = net.op("MatMul", net.x, net.op("Transpose", net.x, perm=[0, 2, 1]))
        net.then("Mul", net.const(1 / math.sqrt(size)))
    elif kind == "einsum":
        letters = "bhtd"[: len(net.shape) - 1] + "k"
        net.x = net.op("Einsum", net.x, net.weight(size, 12, fan_in=size), equation=f"{letters},ko->{letters[:-1]}o")
    elif kind == "bilinear":
        left, right = (net.op("MatMul", net.x, net.weight(size, 8, fan_in=size)) for _ in range(2))
        net.x = net.op("Mul", left, net.op("Sigmoid", right))
    else:
        net.then("MatMul", net.weight(size, 6, fan_in=size))
        net.then("MatMul", net.weight(6, size, fan_in=6))
        net.then("Div", net.const(2.0))
