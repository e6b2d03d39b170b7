"""Layers of the random networks that fit any shape; each adds nodes behind ``net.x`` or says that it does not fit."""

from __future__ import annotations

import math

import numpy as np
from draw_network import Network, need
from onnx import TensorProto


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


def write_norm(net: Network, axis: int) -> None:
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
