"""Read a compiled ``.bin`` and write it back without the build machine's paths.

The ``.bin`` is one protobuf message: a graph whose BPU nodes share one packed code block, and a map of build options.
Two builds of the same input differ only in the random name of the compiler's temporary folder, the paths of the build
machine, the order of the map and, when the tool starts from other memory, the order of the named constants;
:func:`strip_paths` removes all four, so equal builds become equal bytes. The code itself is untouched: the vendor's
simulator gives identical results before and after (tested).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from boardlift_compiler.wire import BYTES, Field, WireError, fields, packed_numbers, write_field, write_text

GRAPH_FIELDS = (3, 5)
METADATA_FIELD, METADATA_BY_MODEL_FIELD = 4, 6
PACKED_CODE = "PACKED_HBM_MODEL"
ELEMENT_TYPES = {1: "float32", 2: "uint8", 3: "int8", 5: "int16", 6: "int32", 7: "int64", 14: "bool"}
PATH_KEYS = {"ONNX_MODEL": "model.onnx", "WORKING_DIR": "out", "CAFFE_MODEL": "", "PROTOTXT": ""}
SORTED_FIELDS = {3: 8, 6: 1}
"""Graph fields whose order means nothing (constants, inner tensors) -> field of their name."""
TEMPORARY_PATH = re.compile(rb"/(?:[^/\x00 \"']+/)*tmp[A-Za-z0-9_]{8}(?=/)")


class BinUnreadableError(ValueError):
    """The file is not a compiled model; the message says why."""


@dataclass(frozen=True)
class BinNode:
    """One node of the compiled graph, in execution order."""

    name: str
    """Node name; for a BPU node also the name of its code in the packed block."""
    op_type: str
    """``BPU`` or a host operator such as ``Quantize``, ``Dequantize``, ``Softmax``."""
    inputs: tuple[str, ...]
    """Tensor names, in the order the code takes them."""
    outputs: tuple[str, ...]
    """Tensor names."""


@dataclass(frozen=True)
class BinTensor:
    """A tensor between nodes."""

    dtype: str
    """Element type."""
    shape: tuple[int, ...]
    """Valid (unpadded) dimensions."""


@dataclass(frozen=True)
class CompiledModel:
    """What is read from a ``.bin``."""

    name: str
    """Model name inside the file (the prefix it was built with)."""
    nodes: tuple[BinNode, ...]
    """Nodes in execution order."""
    tensors: dict[str, BinTensor]
    """Graph inputs, outputs and inner tensors by name."""
    code: bytes
    """The packed BPU code (an ``.hbm``)."""
    options: dict[str, str]
    """Build options recorded in the file, e.g. ``MARCH``."""

    @property
    def bpu_nodes(self) -> tuple[BinNode, ...]:
        """The nodes that run on the BPU."""
        return tuple(n for n in self.nodes if n.op_type == "BPU")

    @property
    def cpu_ops(self) -> dict[str, str]:
        """Operators that run on the CPU, name -> type, without the conversions at the BPU's border."""
        return {n.name: n.op_type for n in self.nodes if n.op_type not in ("BPU", "Quantize", "Dequantize")}


def read_bin(data: bytes) -> CompiledModel:
    """Parse a compiled model.

    Raises:
        BinUnreadableError: when the bytes are damaged or hold no graph with BPU code.
    """
    try:
        top = list(fields(data))
        graphs = [f for f in top if f.number in GRAPH_FIELDS and f.kind == BYTES and len(f.data)]
        if not graphs:
            raise BinUnreadableError("the file holds no compiled graph")
        options: dict[str, str] = {}
        for part in top:
            options.update(_read_options(part))
        return _read_compiled_graph(graphs[0], options)
    except WireError as error:
        raise BinUnreadableError(f"the file is not a compiled model: {error}") from error


def _read_compiled_graph(graph: Field, options: dict[str, str]) -> CompiledModel:
    name, code = "", b""
    nodes: list[BinNode] = []
    tensors: dict[str, BinTensor] = {}
    for part in fields(graph.data):
        if part.number == 1:
            nodes.append(_read_bin_node(part))
        elif part.number == 2:
            name = part.text
        elif part.number == 3:
            code = _read_code(part) or code
        elif part.number in (4, 5, 6):
            key, tensor = _read_value(part)
            tensors[key] = tensor
    if any(n.op_type == "BPU" for n in nodes) and not code:
        raise BinUnreadableError("the file names BPU nodes but holds no code for them")
    return CompiledModel(name, tuple(nodes), tensors, code, options)


def _read_bin_node(part: Field) -> BinNode:
    texts: dict[int, list[str]] = {1: [], 2: [], 3: [], 4: []}
    for item in fields(part.data):
        if item.number in texts:
            texts[item.number].append(item.text)
    return BinNode("".join(texts[3]), "".join(texts[4]), tuple(texts[1]), tuple(texts[2]))


def _read_code(part: Field) -> bytes | None:
    name, payload = "", None
    for item in fields(part.data):
        if item.number == 8:
            name = item.text
        elif item.number == 5:
            payload = item.data
    return bytes(payload) if name == PACKED_CODE and payload is not None else None


def _read_value(part: Field) -> tuple[str, BinTensor]:
    name, dtype, dims = "", "unknown", []
    for item in fields(part.data):
        if item.number == 1:
            name = item.text
        elif item.number == 2:
            for inner in fields(item.data):
                if inner.number == 1:
                    dtype = ELEMENT_TYPES.get(inner.value, f"type-{inner.value}")
                elif inner.number == 2:
                    dims += packed_numbers(inner)
    return name, BinTensor(dtype, tuple(dims))


def _entry(part: Field) -> tuple[str, str]:
    pair = {item.number: item.text for item in fields(part.data)}
    return pair.get(1, ""), pair.get(2, "")


def _read_options(part: Field) -> dict[str, str]:
    if part.number == METADATA_FIELD and part.kind == BYTES:
        return dict([_entry(part)])
    if part.number == METADATA_BY_MODEL_FIELD and part.kind == BYTES:
        return dict(_entry(f) for f in fields(part.data) if f.number == 1)
    return {}


def strip_paths(data: bytes) -> bytes:
    """Return the model without build paths and with its options sorted; equal builds give equal bytes.

    Raises:
        BinUnreadableError: when the bytes are not a compiled model.
    """
    read_bin(data)
    out = bytearray()
    loose: list[tuple[str, str]] = []
    for part in fields(data):
        if part.number in GRAPH_FIELDS and part.kind == BYTES:
            out += write_field(part, _strip_graph(part))
        elif part.number == METADATA_BY_MODEL_FIELD and part.kind == BYTES:
            entries = sorted(_neutral(*_entry(f)) for f in fields(part.data) if f.number == 1)
            out += write_field(part, b"".join(_write_entry(1, *e) for e in entries))
        elif part.number == METADATA_FIELD and part.kind == BYTES:
            loose.append(_neutral(*_entry(part)))
        else:
            out += write_field(part)
    return bytes(out) + b"".join(_write_entry(METADATA_FIELD, *e) for e in sorted(loose))


def _write_entry(number: int, key: str, value: str) -> bytes:
    inner = write_text(1, key) + write_text(2, value)
    return write_field(Field(number, BYTES, 0, memoryview(b"")), inner)


def _neutral(key: str, value: str) -> tuple[str, str]:
    if key in PATH_KEYS:
        return key, PATH_KEYS[key] if value else ""
    if key == "CALI_DIR":
        return key, "".join(f"{p.rstrip('/').rsplit('/', 1)[-1]};" for p in value.split(";") if p)
    return key, value


def _strip_graph(graph: Field) -> bytes:
    out = bytearray()
    named: dict[int, list[tuple[str, bytes]]] = {number: [] for number in SORTED_FIELDS}
    for part in fields(graph.data):
        if part.number not in SORTED_FIELDS:
            out += write_field(part)
            continue
        inner = None
        if part.number == 3 and _read_code(part) is not None:
            inner = b"".join(
                write_field(item, _mask(bytes(item.data)) if item.number == 5 else None) for item in fields(part.data)
            )
        named[part.number].append((_name_in(part, SORTED_FIELDS[part.number]), write_field(part, inner)))
    for parts in named.values():
        out += b"".join(data for _, data in sorted(parts))
    return bytes(out)


def _name_in(part: Field, number: int) -> str:
    return next((item.text for item in fields(part.data) if item.number == number), "")


def _mask(code: bytes) -> bytes:
    """Replace temporary paths by neutral ones of the same length, so that no offset moves."""
    return TEMPORARY_PATH.sub(lambda m: b"/" + b"x" * (len(m.group()) - 1), code)
