"""Write a large model to a file without holding its bytes: weights go out one by one.

A protobuf message is the concatenation of its fields, in any order; so a graph can be written as everything but its
weights, and then each weight as one more `initializer` field. Serialising at once needs three times the model's size
in memory, this needs the model and its largest weight.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import onnx

_LENGTH_DELIMITED = 2


def write_model(model: onnx.ModelProto, path: Path) -> int:
    """Write `model` to `path`, replacing what is there; returns the number of bytes.

    Raises:
        OSError: The file cannot be written.
    """
    head, graph = onnx.ModelProto(), onnx.GraphProto()
    copy_fields(model, head, "graph")
    copy_fields(model.graph, graph, "initializer")
    graph_head = graph.SerializeToString()
    tag = _tag(onnx.GraphProto, "initializer")
    sizes = [len(tensor.SerializeToString()) for tensor in model.graph.initializer]
    weights = sum(len(tag) + len(_varint(size)) + size for size in sizes)
    with path.open("wb") as file:
        file.write(head.SerializeToString())
        file.write(_tag(onnx.ModelProto, "graph") + _varint(len(graph_head) + weights))
        file.write(graph_head)
        for tensor, size in zip(model.graph.initializer, sizes, strict=True):
            _write_tensor(file, tag, tensor, size)
        return file.tell()


def _write_tensor(file: BinaryIO, tag: bytes, tensor: onnx.TensorProto, size: int) -> None:
    file.write(tag + _varint(size))
    file.write(tensor.SerializeToString())


def copy_fields(source: onnx.ModelProto | onnx.GraphProto, made: onnx.ModelProto | onnx.GraphProto, but: str) -> None:
    """Copy every field that is set, except one."""
    for descriptor, value in source.ListFields():
        if descriptor.name == but:
            continue
        if isinstance(value, str | bytes | int | float):
            setattr(made, descriptor.name, value)
        elif hasattr(value, "extend"):
            getattr(made, descriptor.name).extend(value)
        else:
            getattr(made, descriptor.name).CopyFrom(value)


def _tag(kind: type[onnx.ModelProto] | type[onnx.GraphProto], field: str) -> bytes:
    return _varint(kind.DESCRIPTOR.fields_by_name[field].number << 3 | _LENGTH_DELIMITED)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
