"""Is a graph sound enough to work on? Names, order, cycles, sizes, nesting: linear time, named errors.

The onnx checker is run on results; on what users bring it is too strict in places and silent in others (huge
dimensions, lengths of weights), so these checks are our own.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import onnx
from onnx import helper

from boardlift_transform.check_ends import refuse_map
from boardlift_transform.refusal import Refusal

MAX_DIMENSION = 1 << 31
MAX_ELEMENTS = 1 << 34
MAX_NODES = 200_000
MAX_DEPTH = 24
MAX_RANK = 64


def check_graph(model: onnx.ModelProto) -> onnx.ModelProto:
    """Check a model; returns it, or a copy in topological order when its nodes were out of order.

    Raises:
        Refusal: MODEL_EMPTY, OPSET_UNKNOWN, GRAPH_TOO_LARGE, NESTING_TOO_DEEP, DUPLICATE_NAME, VALUE_UNDEFINED,
            GRAPH_CYCLIC, SHAPE_TOO_LARGE, INITIALIZER_SIZE, ATTRIBUTE_INVALID, VALUE_TYPE.
    """
    graph = model.graph
    if not graph.output:
        raise Refusal("MODEL_EMPTY", "the graph has no outputs", remedy="export it again with outputs")
    if not graph.node:
        raise Refusal(
            "MODEL_EMPTY", "the graph has no nodes", remedy="a model that computes nothing needs no compiling"
        )
    _check_header(model)
    _check_opsets(model)
    _count_nodes(graph)
    makers = {name: node.name or node.op_type for node in graph.node for name in node.output}
    for value in (*graph.input, *graph.output):
        refuse_map(value, makers)
    for value in (*graph.input, *graph.output, *graph.value_info):
        _check_value(value)
    for tensor in graph.initializer:
        _check_tensor(tensor)
    in_order = _check_names(graph, set(), 0)
    if in_order:
        return model
    return _sorted(model)


def _check_header(model: onnx.ModelProto) -> None:
    texts = [model.producer_name, model.producer_version, model.domain, model.graph.name]
    texts += [o.domain for o in model.opset_import]
    texts += [part for p in model.metadata_props for part in (p.key, p.value)]
    for function in model.functions:
        texts += [function.name, function.domain, *function.input, *function.output]
        texts += [t for node in function.node for t in _texts_of(node)]
    _check_texts(texts)


def _texts_of(node: onnx.NodeProto) -> list[str]:
    return [node.op_type, node.domain, node.name, *node.input, *node.output, *(a.name for a in node.attribute)]


def _check_texts(texts: Iterable[object]) -> None:
    """Text that is no UTF-8 comes out of protobuf as bytes."""
    for text in texts:
        if not isinstance(text, str):
            raise Refusal(
                "MODEL_CORRUPT", f"a name is no text: {text!r:.80}", remedy="the file is damaged: export it again"
            )


def _check_opsets(model: onnx.ModelProto) -> None:
    newest = onnx.defs.onnx_opset_version()
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not versions:
        raise Refusal("OPSET_UNKNOWN", "the model does not say which operator set it uses", remedy="export it again")
    if not 1 <= max(versions) <= newest:
        raise Refusal(
            "OPSET_UNKNOWN",
            f"opset {max(versions)} is not known (newest: {newest})",
            remedy="export with a released opset",
            metadata={"opset": max(versions)},
        )


def _subgraphs(node: onnx.NodeProto) -> Iterable[onnx.GraphProto]:
    for attr in node.attribute:
        if attr.type == onnx.AttributeProto.GRAPH:
            yield attr.g
        elif attr.type == onnx.AttributeProto.GRAPHS:
            yield from attr.graphs


def _count_nodes(graph: onnx.GraphProto) -> None:
    pending: deque[tuple[onnx.GraphProto, int]] = deque([(graph, 0)])
    total = 0
    while pending:
        current, depth = pending.popleft()
        total += len(current.node)
        if depth > MAX_DEPTH:
            raise Refusal("NESTING_TOO_DEEP", f"subgraphs are nested deeper than {MAX_DEPTH}")
        if total > MAX_NODES:
            raise Refusal(
                "GRAPH_TOO_LARGE",
                f"more than {MAX_NODES} nodes",
                remedy="split the model",
                metadata={"limit": MAX_NODES},
            )
        _check_texts(v.name for v in (*current.input, *current.output, *current.value_info))
        _check_texts(t.name for t in current.initializer)
        for node in current.node:
            _check_texts(_texts_of(node))
            if node.attribute:
                pending.extend((g, depth + 1) for g in _subgraphs(node))


def _check_value(value: onnx.ValueInfoProto) -> None:
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return
    _check_texts(d.dim_param for d in value.type.tensor_type.shape.dim)
    dims = [d.dim_value for d in value.type.tensor_type.shape.dim if d.HasField("dim_value")]
    _check_dims(value.name, dims)


def _check_dims(name: str, dims: list[int]) -> None:
    if (
        len(dims) > MAX_RANK
        or any(d > MAX_DIMENSION or d < -1 for d in dims)
        or math.prod(d for d in dims if d > 0) > MAX_ELEMENTS
    ):
        raise Refusal(
            "SHAPE_TOO_LARGE",
            f"{name} has dimensions {dims[:8]}",
            remedy="no target holds such a tensor; check the export",
            metadata={"tensor": name, "shape": dims[:8]},
        )


def _check_tensor(tensor: onnx.TensorProto) -> None:
    _check_dims(tensor.name, list(tensor.dims))
    if any(d < 0 for d in tensor.dims):
        raise _size(tensor, "a negative dimension")
    if tensor.data_type not in _ITEM_BYTES:
        if tensor.data_type not in onnx.TensorProto.DataType.values() or not tensor.data_type:
            raise _size(tensor, f"element type {tensor.data_type}, which does not exist")
        return
    if tensor.HasField("raw_data"):
        want = math.prod(tensor.dims) * _ITEM_BYTES[tensor.data_type]
        have = len(tensor.raw_data)
        if want != have:
            raise _size(tensor, f"{have} bytes where its shape needs {want}")
        return
    have = max(
        len(tensor.float_data),
        len(tensor.int32_data),
        len(tensor.int64_data),
        len(tensor.double_data),
        len(tensor.uint64_data),
    )
    if have != math.prod(tensor.dims):
        raise _size(tensor, f"{have} elements where its shape needs {math.prod(tensor.dims)}")


def _size(tensor: onnx.TensorProto, what: str) -> Refusal:
    return Refusal(
        "INITIALIZER_SIZE",
        f"constant {tensor.name} has {what}",
        remedy="the file is damaged: export it again",
        metadata={"tensor": tensor.name},
    )


_ITEM_BYTES = {
    getattr(onnx.TensorProto, name): helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, name)).itemsize
    for name in [
        "FLOAT",
        "UINT8",
        "INT8",
        "UINT16",
        "INT16",
        "INT32",
        "INT64",
        "BOOL",
        "FLOAT16",
        "DOUBLE",
        "UINT32",
        "UINT64",
    ]
}


def _check_names(graph: onnx.GraphProto, outer: set[str], depth: int) -> bool:
    """Every value has one maker and every read value has one; True when nodes come in topological order."""
    inputs = {v.name for v in graph.input}
    if len(inputs) != len(graph.input):
        raise _duplicate("an input")
    known = inputs | {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
    if len({t.name for t in graph.initializer}) != len(graph.initializer):
        raise _duplicate("a constant")
    made: set[str] = set()
    for node in graph.node:
        for name in node.output:
            if name and (name in made or name in known):
                raise _duplicate(name)
            made.add(name)
    in_order = True
    seen = set(known)
    everything = known | made | outer
    for node in graph.node:
        for name in node.input:
            if name and name not in seen and name not in outer:
                if name not in everything:
                    raise _undefined(name, node)
                in_order = False
        for subgraph in _subgraphs(node):
            _check_names(subgraph, everything, depth + 1)
        seen.update(node.output)
    for value in graph.output:
        if value.name not in everything:
            raise _undefined(value.name, None)
    return in_order


def _duplicate(name: str) -> Refusal:
    return Refusal(
        "DUPLICATE_NAME",
        f"two values are called {name!r}",
        remedy="a graph must name every value once: export it again",
        metadata={"value": name},
    )


def _undefined(name: str, node: onnx.NodeProto | None) -> Refusal:
    reader = f"node {node.name or node.op_type}" if node is not None else "the output list"
    return Refusal(
        "VALUE_UNDEFINED",
        f"{reader} reads {name!r}, which nothing makes: a constant or an input is missing",
        remedy="export it again with its weights",
        metadata={"value": name, "node": node.name if node is not None else ""},
    )


def _sorted(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with nodes in topological order (Kahn, stable).

    Raises:
        Refusal: GRAPH_CYCLIC.
    """
    nodes = list(model.graph.node)
    maker = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    readers: list[list[int]] = [[] for _ in nodes]
    waiting = [0] * len(nodes)
    for index, node in enumerate(nodes):
        for name in set(_all_reads(node)):
            if name in maker and maker[name] != index:
                readers[maker[name]].append(index)
                waiting[index] += 1
            elif maker.get(name) == index:
                raise _cyclic(node)
    ready = deque(i for i, count in enumerate(waiting) if count == 0)
    order: list[int] = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    if len(order) != len(nodes):
        raise _cyclic(nodes[next(i for i, count in enumerate(waiting) if count)])
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes[i] for i in order)
    return copy


def _all_reads(node: onnx.NodeProto) -> Iterable[str]:
    yield from (name for name in node.input if name)
    for subgraph in _subgraphs(node):
        for inner in subgraph.node:
            yield from _all_reads(inner)
        yield from (v.name for v in subgraph.output)


def _cyclic(node: onnx.NodeProto) -> Refusal:
    return Refusal(
        "GRAPH_CYCLIC",
        f"node {node.name or node.op_type} depends on its own result",
        remedy="export it again",
        metadata={"node": node.name or node.op_type},
    )
