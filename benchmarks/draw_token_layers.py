"""Layers of the random networks for sequences ``[1, T, D]`` and vectors ``[1, D]``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from draw_element_layers import activation, write_norm
from draw_network import Network, need


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
    write_norm(net, -1)
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
