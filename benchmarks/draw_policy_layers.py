"""Wide layers of the random networks that robot policies have: conditions, state, whole numbers, several heads."""

from __future__ import annotations

import math

import numpy as np
from draw_network import Network, need
from onnx import TensorProto


def _condition(net: Network) -> tuple[str, int]:
    """Return a vector ``[1, D]`` that a second input gives, and D: a state, a time step, or an index's embedding."""
    kind = net.pick(("state", "step", "index"))
    name = f"{kind}{len(net.inputs)}"
    need(len(net.inputs) < 4)
    if kind == "state":
        return net.feed(name, (1, 12)), 12
    if kind == "index":
        table = net.const(net.rng.normal(0, 1, (7, 16)))
        return str(net.op("Gather", table, net.feed(name, (1,), most=7), axis=0)), 16
    step = net.op("Cast", net.feed(name, (1,), most=100), to=TensorProto.FLOAT)
    rates = net.const(np.exp(-np.arange(8) * math.log(1000) / 8)[None])
    angle = net.op("Mul", net.op("Unsqueeze", step, net.const([-1], np.int64)), rates)
    return str(net.op("Concat", net.op("Sin", angle), net.op("Cos", angle), axis=-1)), 16


def modulate(net: Network) -> None:
    """Scale and shift by a condition (FiLM, adaptive norms of diffusion policies)."""
    width = net.shape[1] if len(net.shape) == 4 else net.shape[-1]
    given, size = _condition(net)
    made = net.op("Gemm", given, net.weight(2 * width, size, fan_in=size), net.const(net.rng.normal(0, 0.2, 2 * width)),
                  transB=1)  # fmt: skip
    if len(net.shape) > 2:
        tail = [1, 1] if len(net.shape) == 4 else [1]
        shape = [1, 2 * width, *tail] if len(net.shape) == 4 else [1, 1, 2 * width]
        made = net.op("Reshape", made, net.const(shape, np.int64))
    axis = 1 if len(net.shape) == 4 else -1
    scale, shift = net.op("Split", made, net.const([width, width], np.int64), outputs=2, axis=axis)
    net.x = net.op("Add", net.op("Mul", net.x, net.op("Add", scale, net.const(1.0))), shift)


def join_input(net: Network) -> None:
    """Join what a second input gives."""
    given, size = _condition(net)
    if len(net.shape) == 3:
        given = net.op("Expand", net.op("Unsqueeze", given, net.const([1], np.int64)),
                       net.const([1, net.shape[1], size], np.int64))  # fmt: skip
    need(len(net.shape) < 4)
    net.then("Concat", given, axis=-1)


def normalise(net: Network) -> None:
    """An observation's running mean and deviation, cut off at 5 or 10."""
    width = net.shape[-1]
    spread = np.exp(net.rng.normal(0, 1.5, width))
    net.then("Sub", net.const(net.rng.normal(0, 0.3, width)))
    net.then("Div", net.const(np.sqrt(spread**2 + 1e-8)))
    limit = net.pick((5.0, 10.0))
    net.then("Clip", net.const(-limit), net.const(limit))


def denormalise(net: Network) -> None:
    """A head's own scale and offset: joints in radians beside speeds beside grippers."""
    width = net.shape[-1]
    net.then("Mul", net.const(np.exp(net.rng.normal(0, 1.5, width))))
    net.then("Add", net.const(net.rng.normal(0, 2, width)))


def gated_cell(net: Network) -> None:
    """One step of a GRU or LSTM in primitives, its state an input and an output."""
    need(len(net.shape) == 2 and len(net.inputs) < 4)
    width, hidden = net.shape[-1], 16
    state = net.feed(f"h{len(net.inputs)}", (1, hidden))
    lstm = net.rng.random() < 0.5
    gates = 4 if lstm else 3
    left = net.op("Gemm", net.x, net.weight(gates * hidden, width, fan_in=width),
                  net.const(net.rng.normal(0, 0.2, gates * hidden)), transB=1)  # fmt: skip
    right = net.op("Gemm", state, net.weight(gates * hidden, hidden, fan_in=hidden),
                   net.const(net.rng.normal(0, 0.2, gates * hidden)), transB=1)  # fmt: skip
    size = net.const([hidden] * gates, np.int64)
    if lstm:
        cell = net.feed(f"c{len(net.inputs)}", (1, hidden))
        i, f, g, o = net.op("Split", net.op("Add", left, right), size, outputs=4, axis=1)
        kept, new = net.op("Mul", net.op("Sigmoid", f), cell), net.op("Mul", net.op("Sigmoid", i), net.op("Tanh", g))
        cell = net.op("Add", kept, new)
        net.x = net.op("Mul", net.op("Sigmoid", o), net.op("Tanh", cell))
        net.ends += [net.x, cell]
        return
    a, b, c = net.op("Split", left, size, outputs=3, axis=1)
    d, e, f = net.op("Split", right, size, outputs=3, axis=1)
    reset, update = net.op("Sigmoid", net.op("Add", a, d)), net.op("Sigmoid", net.op("Add", b, e))
    new = net.op("Tanh", net.op("Add", c, net.op("Mul", reset, f)))
    kept = net.op("Mul", net.op("Sub", net.const(1.0), update), new)
    net.x = net.op("Add", kept, net.op("Mul", update, state))
    net.ends.append(net.x)


def buffer(net: Network) -> None:
    """A history that goes round: the oldest row leaves, the newest joins."""
    need(len(net.shape) == 2 and net.shape[-1] <= 64 and len(net.inputs) < 4)
    width = net.shape[-1]
    past = net.feed(f"past{len(net.inputs)}", (1, 5, width))
    newest = net.op("Unsqueeze", net.x, net.const([1], np.int64))
    kept = net.op("Slice", past, *(net.const([v], np.int64) for v in (1, 5, 1)))
    net.x = net.op("Concat", kept, newest, axis=1)
    net.ends.append(net.x)


def queries(net: Network) -> None:
    """Cross attention of learned queries over tokens, in Einsum or MatMul (ACT, Perceiver)."""
    _, tokens, width = net.shape
    need(width % 4 == 0 and tokens <= 32)
    heads, each, count = 2, width // 2, 5
    query = net.const(net.rng.normal(0, 1, (1, heads, count, each)))
    cut = net.const([1, tokens, heads, each], np.int64)
    key, value = (net.op("Reshape", net.op("MatMul", net.x, net.weight(width, width, fan_in=width)), cut)
                  for _ in range(2))  # fmt: skip
    if net.rng.random() < 0.5:
        scores = net.op("Einsum", query, key, equation="bhqd,bkhd->bhqk")
        soft = net.op("Softmax", net.op("Mul", scores, net.const(each**-0.5)), axis=-1)
        mixed = net.op("Einsum", soft, value, equation="bhqk,bkhd->bqhd")
    else:
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 2, 3, 1]))
        soft = net.op("Softmax", net.op("Mul", scores, net.const(each**-0.5)), axis=-1)
        mixed = net.op("Transpose", net.op("MatMul", soft, net.op("Transpose", value, perm=[0, 2, 1, 3])),
                       perm=[0, 2, 1, 3])  # fmt: skip
    net.x = net.op("Reshape", mixed, net.const([1, count, width], np.int64))


def linear_attention(net: Network) -> None:
    """Attention without Softmax: elu + 1 of query and key, keys times values first."""
    _, tokens, width = net.shape
    need(tokens <= 32)
    query, key, value = (net.op("MatMul", net.x, net.weight(width, width, fan_in=width)) for _ in range(3))
    query, key = (net.op("Add", net.op("Elu", t), net.const(1.0)) for t in (query, key))
    memory = net.op("MatMul", net.op("Transpose", key, perm=[0, 2, 1]), value)
    total = net.op("ReduceSum", key, net.const([1], np.int64), keepdims=1)
    below = net.op("ReduceSum", net.op("Mul", query, total), net.const([-1], np.int64), keepdims=1)
    mixed = net.op("Div", net.op("MatMul", query, memory), net.op("Add", below, net.const(1e-3)))
    net.x = net.op("Add", net.x, mixed)


def rotate(net: Network) -> None:
    """Rotary embedding: halves turned against each other by the place."""
    _, tokens, width = net.shape
    need(width % 2 == 0)
    half = width // 2
    angle = np.arange(tokens)[:, None] * 100.0 ** (-np.arange(half) / half)
    cos, sin = (np.concatenate([f(angle)] * 2, -1)[None] for f in (np.cos, np.sin))
    parts = [
        net.op("Slice", net.x, *(net.const([v], np.int64) for v in (*span, 2))) for span in ((half, width), (0, half))
    ]
    turned = net.op("Concat", net.op("Neg", parts[0]), parts[1], axis=-1)
    net.x = net.op("Add", net.op("Mul", net.x, net.const(cos)), net.op("Mul", turned, net.const(sin)))


def masked_mean(net: Network) -> None:
    """Mean over the tokens that a mask keeps; the mask an input of zeros and ones."""
    _, tokens, _ = net.shape
    need(len(net.inputs) < 4)
    mask = net.op("Cast", net.feed(f"mask{len(net.inputs)}", (1, tokens), most=2), to=TensorProto.FLOAT)
    kept = net.op("Mul", net.x, net.op("Unsqueeze", mask, net.const([-1], np.int64)))
    count = net.op("Add", net.op("ReduceSum", mask, net.const([1], np.int64), keepdims=1), net.const(1.0))
    net.x = net.op("Div", net.op("ReduceSum", kept, net.const([1], np.int64), keepdims=0), count)


def nearest_code(net: Network) -> None:
    """The nearest of 12 codes, as a vector-quantised policy looks it up."""
    need(len(net.shape) == 2 and net.shape[-1] <= 64)
    width = net.shape[-1]
    codes = net.rng.normal(0, 1, (12, width))
    cross = net.op("MatMul", net.x, net.const(codes.T))
    far = net.op("Sub", net.const((codes**2).sum(-1)[None]), net.op("Mul", cross, net.const(2.0)))
    net.x = net.op("Gather", net.const(codes), net.op("ArgMin", far, axis=-1, keepdims=0), axis=0)


def gaussian_head(net: Network) -> None:
    """Mean squashed by Tanh, and a deviation whose logarithm is cut off."""
    width = net.shape[-1]
    mean = net.op("Tanh", net.op("MatMul", net.x, net.weight(width, 6, fan_in=width)))
    log = net.op("Clip", net.op("MatMul", net.x, net.weight(width, 6, fan_in=width)), net.const(-5.0), net.const(2.0))
    net.ends.append(net.op("Exp", log))
    net.x = mean


def twist(net: Network) -> None:
    """A rotation from six numbers: normalise, take the projection off, cross product."""
    need(len(net.shape) == 2 and net.shape[-1] >= 6)

    def part(start: int, end: int) -> str:
        return str(net.op("Slice", net.x, *(net.const([v], np.int64) for v in (start, end, 1))))

    def unit(x: str) -> str:
        length = net.op("Sqrt", net.op("Add", net.op("ReduceSum", net.op("Mul", x, x), net.const([1], np.int64)),
                                       net.const(1e-3)))  # fmt: skip
        return str(net.op("Div", x, length))

    first, raw = unit(part(0, 3)), part(3, 6)
    along = net.op("ReduceSum", net.op("Mul", first, raw), net.const([1], np.int64))
    second = unit(net.op("Sub", raw, net.op("Mul", along, first)))
    turn = [[net.op("Gather", v, net.const(order, np.int64), axis=1) for order in ([1, 2, 0], [2, 0, 1])]
            for v in (first, second)]  # fmt: skip
    third = net.op("Sub", net.op("Mul", turn[0][0], turn[1][1]), net.op("Mul", turn[0][1], turn[1][0]))
    net.x = net.op("Concat", first, second, third, axis=1)


def chunk(net: Network) -> None:
    """A vector as steps of actions."""
    need(len(net.shape) == 2 and net.shape[-1] % 4 == 0)
    net.then("Reshape", net.const([1, 4, net.shape[-1] // 4], np.int64))


def shared(net: Network) -> None:
    """The same weights used twice."""
    width = net.shape[-1]
    weight = net.weight(width, width, fan_in=width)
    first = net.op("Tanh", net.op("MatMul", net.x, weight))
    net.x = net.op("Add", net.x, net.op("MatMul", first, weight))
