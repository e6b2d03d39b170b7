"""Seeded damage to valid models, for the fuzz test: bytes, names, shapes, types, edges, attributes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

Random = np.random.Generator
Mutation = Callable[[onnx.ModelProto, Random], None]


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    raw = bytearray(data)
    kind = int(rng.integers(4))
    place = int(rng.integers(max(1, len(raw))))
    if kind == 0:
        for _ in range(int(rng.integers(1, 8))):
            raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del raw[place:]
    elif kind == 2:
        raw[place:place] = raw[place : place + int(rng.integers(1, 64))]
    else:
        del raw[place : place + int(rng.integers(1, 64))]
    return bytes(raw)


def mutate_graph(model: onnx.ModelProto, rng: Random) -> onnx.ModelProto:
    """A copy with one to three faults."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(int(rng.integers(1, 4))):
        if copy.graph.node:
            MUTATIONS[int(rng.integers(len(MUTATIONS)))](copy, rng)
    return copy


def _pick(rng: Random, items: object) -> int:
    return int(rng.integers(max(1, len(items))))  # type: ignore[arg-type]


def _rename_input(model: onnx.ModelProto, rng: Random) -> None:
    node = model.graph.node[_pick(rng, model.graph.node)]
    other = model.graph.node[_pick(rng, model.graph.node)]
    if node.input:
        node.input[_pick(rng, node.input)] = other.output[0] if other.output else ""


def _drop_node(model: onnx.ModelProto, rng: Random) -> None:
    del model.graph.node[_pick(rng, model.graph.node)]


def _repeat_node(model: onnx.ModelProto, rng: Random) -> None:
    model.graph.node.append(model.graph.node[_pick(rng, model.graph.node)])


def _swap_nodes(model: onnx.ModelProto, rng: Random) -> None:
    nodes = list(model.graph.node)
    nodes = [nodes[i] for i in rng.permutation(len(nodes))]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _change_operator(model: onnx.ModelProto, rng: Random) -> None:
    names = [
        "Relu",
        "Add",
        "MatMul",
        "Conv",
        "Gemm",
        "Reshape",
        "Concat",
        "Softmax",
        "Clip",
        "Slice",
        "Gather",
        "MaxPool",
        "If",
        "Loop",
        "Nonsense",
        "GRU",
        "Resize",
    ]
    model.graph.node[_pick(rng, model.graph.node)].op_type = names[_pick(rng, names)]


def _change_attribute(model: onnx.ModelProto, rng: Random) -> None:
    node = model.graph.node[_pick(rng, model.graph.node)]
    if not node.attribute:
        return
    attr = node.attribute[_pick(rng, node.attribute)]
    values = [-1, 0, 1, 3, 1 << 20, -(1 << 62)]
    if attr.ints:
        attr.ints[_pick(rng, attr.ints)] = values[_pick(rng, values)]
    elif attr.type == onnx.AttributeProto.INT:
        attr.i = values[_pick(rng, values)]
    else:
        attr.name = "other"


def _drop_weight(model: onnx.ModelProto, rng: Random) -> None:
    if model.graph.initializer:
        del model.graph.initializer[_pick(rng, model.graph.initializer)]


def _change_weight(model: onnx.ModelProto, rng: Random) -> None:
    if not model.graph.initializer:
        return
    weight = model.graph.initializer[_pick(rng, model.graph.initializer)]
    kind = int(rng.integers(4))
    if kind == 0 and weight.dims:
        weight.dims[_pick(rng, weight.dims)] += int(rng.integers(-2, 3))
    elif kind == 1:
        weight.data_type = int(rng.integers(0, 20))
    elif kind == 2 and weight.raw_data:
        weight.raw_data = rng.integers(0, 256, len(weight.raw_data)).astype(np.uint8).tobytes()
    elif weight.dims:
        weight.dims[0] = 1 << 40


def _change_input(model: onnx.ModelProto, rng: Random) -> None:
    value = model.graph.input[_pick(rng, model.graph.input)] if model.graph.input else None
    if value is None:
        return
    dims = value.type.tensor_type.shape.dim
    kind = int(rng.integers(3))
    if kind == 0 and dims:
        dims[_pick(rng, dims)].dim_value = int(rng.integers(-1, 300))
    elif kind == 1:
        value.type.tensor_type.elem_type = int(rng.integers(0, 18))
    elif dims:
        del dims[_pick(rng, dims)]


def _change_output(model: onnx.ModelProto, rng: Random) -> None:
    value = model.graph.output[_pick(rng, model.graph.output)] if model.graph.output else None
    if value is not None:
        value.name = model.graph.node[_pick(rng, model.graph.node)].output[0] if rng.integers(2) else "nobody"


def _change_opset(model: onnx.ModelProto, rng: Random) -> None:
    model.opset_import[0].version = int(rng.integers(0, 40))
    if rng.integers(3) == 0:
        model.opset_import[0].domain = "somewhere"


MUTATIONS: tuple[Mutation, ...] = (
    _rename_input,
    _drop_node,
    _repeat_node,
    _swap_nodes,
    _change_operator,
    _change_attribute,
    _change_attribute,
    _drop_weight,
    _change_weight,
    _change_input,
    _change_output,
    _change_opset,
)
