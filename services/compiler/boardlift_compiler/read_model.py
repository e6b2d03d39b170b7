"""Describe an ONNX file: inputs, outputs, nodes and the weights' types, without running or trusting it.

The service never imports ``onnx``: the field numbers used here are those of the public ONNX format.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from boardlift_compiler.wire import BYTES, FIXED32, Field, WireError, fields, packed_numbers, signed

MAX_NODES = 200_000
DTYPE_NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
}  # fmt: skip
"""ONNX element type -> numpy-like name."""

Dim = int | str
AttributeValue = int | float | str | tuple[int, ...]


class ModelUnreadableError(ValueError):
    """The file is not an ONNX model; the message says what is wrong with it."""


@dataclass(frozen=True)
class TensorInfo:
    """A graph input or output."""

    name: str
    """Tensor name."""
    dtype: str
    """Element type, e.g. ``float32``."""
    shape: tuple[Dim, ...]
    """Dimensions; a string (possibly empty) is a dynamic one."""


@dataclass(frozen=True)
class Weight:
    """An initialiser or a Constant node's value."""

    name: str
    """Tensor name."""
    dtype: str
    """Element type."""
    shape: tuple[int, ...]
    """Dimensions."""
    has_nan: bool = False
    """True when a float32 value is NaN."""
    integers: tuple[int, ...] = ()
    """The values of a short int64/int32 tensor (up to 64 elements): shapes, axes, pads."""
    number: float | None = None
    """The value of a float32 tensor of one element: bounds, factors."""
    external: bool = False
    """True when the values lie in another file."""


@dataclass(frozen=True)
class Node:
    """One operator."""

    name: str
    """Node name; may be empty."""
    op_type: str
    """Operator name."""
    domain: str
    """Operator domain; empty for the official one."""
    inputs: tuple[str, ...]
    """Tensor names; empty string for an absent optional input."""
    outputs: tuple[str, ...]
    """Tensor names."""
    attributes: Mapping[str, AttributeValue] = field(default_factory=lambda: MappingProxyType({}))
    """Scalar, text and integer-list attributes; others are left out."""


@dataclass(frozen=True)
class ModelSummary:
    """What the compiler service needs to know of a model."""

    ir_version: int
    """IR version of the file."""
    opsets: Mapping[str, int]
    """Domain -> opset version; the official domain is the empty string."""
    graph_name: str
    """Name of the graph; the tool names the subgraphs after it."""
    inputs: tuple[TensorInfo, ...]
    """Real inputs: initialisers that are listed as inputs are left out."""
    outputs: tuple[TensorInfo, ...]
    """Graph outputs."""
    nodes: tuple[Node, ...]
    """Nodes in file order."""
    weights: Mapping[str, Weight]
    """Initialisers and Constant values by name."""

    @property
    def opset(self) -> int:
        """Opset version of the official domain, 0 when absent."""
        return self.opsets.get("", self.opsets.get("ai.onnx", 0))


def read_model(data: bytes) -> ModelSummary:
    """Describe the ONNX model in ``data``.

    Raises:
        ModelUnreadableError: when the bytes are not an ONNX model with a graph.
    """
    ir_version, opsets, graph = 0, {}, None
    try:
        for part in fields(data):
            if part.number == 1:
                ir_version = signed(part.value)
            elif part.number == 8 and part.kind == BYTES:
                domain, version = _read_opset(part)
                opsets[domain] = version
            elif part.number == 7 and part.kind == BYTES:
                graph = part
        if graph is None or ir_version <= 0:
            raise ModelUnreadableError("the file holds no ONNX graph")
        return _read_graph(graph, ir_version, opsets)
    except WireError as error:
        raise ModelUnreadableError(f"the file is not an ONNX model: {error}") from error


def _floats(data: memoryview) -> npt.NDArray[np.float32]:
    """Read little-endian float32 numbers.

    Raises:
        WireError: when the bytes are no whole number of them.
    """
    if len(data) % 4:
        raise WireError(f"{len(data)} bytes of float32 numbers")
    return np.frombuffer(data, "<f4")


def _read_opset(part: Field) -> tuple[str, int]:
    domain, version = "", 0
    for item in fields(part.data):
        if item.number == 1:
            domain = item.text
        elif item.number == 2:
            version = signed(item.value)
    return domain, version


def _read_graph(graph: Field, ir_version: int, opsets: dict[str, int]) -> ModelSummary:
    name = ""
    nodes: list[Node] = []
    weights: dict[str, Weight] = {}
    inputs: list[TensorInfo] = []
    outputs: list[TensorInfo] = []
    for part in fields(graph.data):
        if part.number == 1:
            node, constant = _read_node(part)
            nodes.append(node)
            if constant is not None:
                weights[constant.name] = constant
            if len(nodes) > MAX_NODES:
                raise ModelUnreadableError(f"the graph has more than {MAX_NODES} nodes")
        elif part.number == 2:
            name = part.text
        elif part.number == 5:
            weight = _read_weight(part)
            weights[weight.name] = weight
        elif part.number == 11:
            inputs.append(_read_tensor_info(part))
        elif part.number == 12:
            outputs.append(_read_tensor_info(part))
    real = tuple(i for i in inputs if i.name not in weights)
    return ModelSummary(
        ir_version, MappingProxyType(opsets), name, real, tuple(outputs), tuple(nodes), MappingProxyType(weights)
    )


def _read_node(part: Field) -> tuple[Node, Weight | None]:
    inputs: list[str] = []
    outputs: list[str] = []
    name = op_type = domain = ""
    attributes: dict[str, AttributeValue] = {}
    tensor: Field | None = None
    for item in fields(part.data):
        if item.number == 1:
            inputs.append(item.text)
        elif item.number == 2:
            outputs.append(item.text)
        elif item.number == 3:
            name = item.text
        elif item.number == 4:
            op_type = item.text
        elif item.number == 7:
            domain = item.text
        elif item.number == 5:
            key, value, inner = _read_attribute(item)
            if value is not None:
                attributes[key] = value
            tensor = inner or tensor
    constant = None
    if op_type == "Constant" and tensor is not None and outputs:
        constant = _read_weight(tensor, outputs[0])
    return Node(name, op_type, domain, tuple(inputs), tuple(outputs), MappingProxyType(attributes)), constant


def _read_attribute(part: Field) -> tuple[str, AttributeValue | None, Field | None]:
    name = ""
    value: AttributeValue | None = None
    integers: list[int] = []
    tensor: Field | None = None
    for item in fields(part.data):
        if item.number == 1:
            name = item.text
        elif item.number == 2:
            if item.kind != FIXED32:
                raise WireError("a float attribute is no float")
            value = float(_floats(item.data)[0])
        elif item.number == 3:
            value = signed(item.value)
        elif item.number == 4:
            value = item.text
        elif item.number == 5:
            tensor = item
        elif item.number == 8:
            integers += packed_numbers(item)
    return name, (tuple(integers) if integers else value), tensor


def _read_weight(part: Field, name: str = "") -> Weight:
    dims: list[int] = []
    dtype = 0
    raw: memoryview | None = None
    external = False
    floats: list[memoryview] = []
    integers: list[int] = []
    for item in fields(part.data):
        if item.number == 1:
            dims += packed_numbers(item)
        elif item.number == 2:
            dtype = item.value
        elif item.number == 4:
            floats.append(item.data)
        elif item.number in (5, 7):
            integers += packed_numbers(item)
        elif item.number == 8:
            name = name or item.text
        elif item.number == 9:
            raw = item.data
        elif item.number == 13 or (item.number == 14 and item.value == 1):
            external = True
    type_name = DTYPE_NAMES.get(dtype, f"type-{dtype}")
    if raw is not None and type_name in ("int64", "int32") and math.prod(dims) <= 64:
        width = np.dtype("<i8") if type_name == "int64" else np.dtype("<i4")
        integers = [int(v) for v in np.frombuffer(raw[: len(raw) // width.itemsize * width.itemsize], width)]
    chunks = ([raw] if raw is not None else floats) if type_name == "float32" else []
    values = [_floats(c) for c in chunks]
    has_nan = any(bool(np.isnan(v).any()) for v in values)
    number = next((float(v[0]) for v in values if v.size), None) if math.prod(dims) == 1 else None
    return Weight(name, type_name, tuple(dims), has_nan, tuple(integers[:64]), number, external)


def _read_tensor_info(part: Field) -> TensorInfo:
    name, dtype = "", "unknown"
    shape: tuple[Dim, ...] = ()
    for item in fields(part.data):
        if item.number == 1:
            name = item.text
        elif item.number == 2:
            for kind in fields(item.data):
                if kind.number == 1:
                    dtype, shape = _read_tensor_type(kind)
    return TensorInfo(name, dtype, shape)


def _read_tensor_type(part: Field) -> tuple[str, tuple[Dim, ...]]:
    dtype, dims = "unknown", []
    for item in fields(part.data):
        if item.number == 1:
            dtype = DTYPE_NAMES.get(item.value, f"type-{item.value}")
        elif item.number == 2:
            dims = [_read_dim(d) for d in fields(item.data) if d.number == 1]
    return dtype, tuple(dims)


def _read_dim(part: Field) -> Dim:
    for item in fields(part.data):
        if item.number == 1:
            return signed(item.value)
        if item.number == 2:
            return item.text
    return ""
