"""Give the graph inside an ONNX file a name of ours; pure.

The tool names files and compiler arguments after the graph, so a graph's name must not be the caller's.
"""

from __future__ import annotations

from boardlift_compiler.wire import BYTES, fields, write_field, write_text

GRAPH_NAME = "main_graph"
GRAPH_FIELD, NAME_FIELD = 7, 2


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
