"""The families of layers of the random networks, and what a network may end with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from draw_element_layers import activation, clip, cut, element_wise, join, reduce, softmax, unary
from draw_map_layers import (
    batch_norm,
    channel_norm,
    conv,
    conv_transpose,
    depthwise,
    global_pool,
    instance_norm,
    pool,
    rearrange,
    resize,
)
from draw_math_layers import (
    cumulate,
    mask,
    pad_forms,
    pick_elements,
    product,
    rare_reduce,
    rare_unary,
    rescale,
    slice_forms,
    uneven,
)
from draw_network import Layer, Network, need
from draw_policy_layers import (
    buffer,
    chunk,
    denormalise,
    gated_cell,
    gaussian_head,
    join_input,
    linear_attention,
    masked_mean,
    modulate,
    nearest_code,
    normalise,
    queries,
    rotate,
    shared,
    twist,
)
from draw_token_layers import attention, conv1d, dense, layer_norm, recurrent, residual_dense
from draw_vision_layers import (
    boxes,
    conv_forms,
    conv_transpose_forms,
    coordinates,
    grid_sample,
    group_norm,
    patches,
    pool_forms,
    pyramid,
    resize_forms,
    shuffle_forms,
    spatial_attention,
    spatial_softmax,
    volume,
)


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

WIDE_ANY: tuple[Layer, ...] = (
    rare_unary, rare_unary, rare_reduce, mask, cumulate, uneven, rescale, pick_elements, pad_forms, slice_forms,
    product, modulate,
)  # fmt: skip
WIDE: dict[str, tuple[Layer, ...]] = {
    "map": (*WIDE_ANY, group_norm, conv_forms, conv_forms, conv_transpose_forms, pool_forms, shuffle_forms,
            resize_forms, grid_sample, spatial_softmax, coordinates, spatial_attention, pyramid, volume, patches),
    "sequence": (*WIDE_ANY, queries, linear_attention, rotate, masked_mean, join_input, shared),
    "vector": (*WIDE_ANY, normalise, denormalise, gated_cell, buffer, nearest_code, twist, chunk, join_input, shared),
}  # fmt: skip
"""Layers of ``wide`` networks per family, beside the others."""
WIDE_HEADS: tuple[Layer, ...] = (gaussian_head, denormalise, boxes, twist, pick_elements, spatial_softmax)
