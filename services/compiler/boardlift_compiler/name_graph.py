"""Give the graph inside an ONNX file a name of ours, and its constants an order; pure.

The tool names files and compiler arguments after the graph, so a graph's name must not be the caller's.
"""

from __future__ import annotations

from boardlift_compiler.wire import BYTES, Field, fields, write_field, write_text

GRAPH_NAME = "main_graph"
GRAPH_FIELD, NAME_FIELD = 7, 2
SORTED_FIELDS = {5: 8, 13: 1}
"""Graph fields whose order means nothing (initialisers, value infos) -> field of their name."""


def neutral_graph_name(data: bytes, name: str = GRAPH_NAME) -> bytes:
    """Return the model with its graph renamed; every other byte of content stays.

    Raises:
        WireError: when the bytes are not an ONNX model.
    """
    out = bytearray()
    for part in fields(data):
        if part.number != GRAPH_FIELD or part.kind != BYTES:
            out += write_field(part)
            continue
        inner = bytearray()
        for item in fields(part.data):
            if item.number != NAME_FIELD:
                inner += write_field(item)
        inner += write_text(NAME_FIELD, name)
        out += write_field(part, bytes(inner))
    return bytes(out)


def sort_constants(data: bytes) -> bytes:
    """Return the model with its initialisers and value infos sorted by name; nothing else changes.

    The tool writes them in the order of memory addresses, so equal builds would have different digests.

    Raises:
        WireError: when the bytes are not an ONNX model.
    """
    out = bytearray()
    for part in fields(data):
        if part.number != GRAPH_FIELD or part.kind != BYTES:
            out += write_field(part)
            continue
        rest = bytearray()
        named: dict[int, list[tuple[str, bytes]]] = {number: [] for number in SORTED_FIELDS}
        for item in fields(part.data):
            if item.number in SORTED_FIELDS:
                named[item.number].append((_name_in(item, SORTED_FIELDS[item.number]), write_field(item)))
            else:
                rest += write_field(item)
        inner = bytes(rest) + b"".join(d for parts in named.values() for _, d in sorted(parts))
        out += write_field(part, inner)
    return bytes(out)


def _name_in(part: Field, number: int) -> str:
    return next((item.text for item in fields(part.data) if item.number == number), "")
