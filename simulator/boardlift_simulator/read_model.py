"""A compiled `.bin` -> its graph, scales, types, metadata and the packed BPU code.

The message classes are the toolchain's own, loaded from the toolchain that runs us (its package is not imported:
that alone costs half a second and pulls in its runtime).
"""

from __future__ import annotations

import importlib.util
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import CANNOT_OPEN, INVALID_MODEL, BoardError

NUMPY_TYPE = {
    "FLOAT": np.float32,
    "UINT8": np.uint8,
    "INT8": np.int8,
    "UINT16": np.uint16,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
    "DOUBLE": np.float64,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
}
_PACKED = "PACKED_HBM_MODEL"
_MAX_BYTES = 2 << 30


@dataclass(frozen=True)
class Node:
    """One step of the graph, in execution order."""

    name: str
    op_type: str
    """`BPU` for a subgraph (its name is the subgraph's), else the CPU operator."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Value:
    """Type and valid shape of a tensor of the graph."""

    name: str
    dtype: str
    """Key of NUMPY_TYPE."""
    shape: tuple[int, ...]


@dataclass(frozen=True)
class CompiledModel:
    """What a `.bin` holds."""

    path: Path
    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    values: dict[str, Value]
    initializers: dict[str, NDArray[Any]]
    input_types: tuple[str, ...]
    """Runtime type per input: `F32`, `S8`, `NV12`, ..."""
    input_layouts: tuple[str, ...]
    metadata: dict[str, str]
    """The build's settings as the mapper recorded them."""
    hbm: bytes
    """The BPU code of all subgraphs; empty for a model that runs on the CPU only."""


def read_model(path: Path) -> CompiledModel:
    """Reads a compiled model.

    Args:
        path: a `.bin` of hb_mapper makertbin.

    Returns:
        The model.

    Raises:
        BoardError: the file is absent, too large, or no such model.
    """
    if not path.is_file():
        raise BoardError(CANNOT_OPEN, f"open file {path.name} failed, file does not exist")
    if path.stat().st_size > _MAX_BYTES:
        raise BoardError(INVALID_MODEL, f"{path.name} is larger than 2 GiB")
    runtime = _load_messages()
    message = runtime.ModelProto()
    try:
        message.ParseFromString(path.read_bytes())
    except Exception as error:  # the message library's own error class moves between releases
        raise BoardError(INVALID_MODEL, f"{path.name} is not a compiled model: {error}") from error
    graphs = [message.graph] if message.graph.node else list(message.graphs)
    if len(graphs) != 1 or not graphs[0].node:
        raise BoardError(INVALID_MODEL, f"{path.name} holds {len(graphs)} models; the stand-in runs files with one")
    return _model_from_graph(path, graphs[0], message, runtime)


def _model_from_graph(path: Path, graph: Any, message: Any, runtime: Any) -> CompiledModel:
    initializers, hbm = {}, b""
    for tensor in graph.initializer:
        if tensor.name == _PACKED:
            hbm = tensor.string_data[0] if tensor.string_data else b""
        else:
            initializers[tensor.name] = _array(tensor, runtime)
    outputs = tuple(_value(v, runtime) for v in graph.output)
    inputs = tuple(_value(v, runtime) for v in graph.input if v.name not in initializers)
    values = {v.name: v for v in (*(_value(v, runtime) for v in graph.value_info), *inputs, *outputs)}
    return CompiledModel(
        path=path,
        name=graph.name,
        nodes=tuple(
            Node(
                n.name,
                n.op_type,
                tuple(n.input),
                tuple(n.output),
                {a.name: _attribute(a, runtime) for a in n.attribute},
            )
            for n in graph.node
        ),
        inputs=inputs,
        outputs=outputs,
        values=values,
        initializers=initializers,
        input_types=tuple(runtime.InputDataType.Name(t) for t in graph.input_type),
        input_layouts=tuple(runtime.InputLayoutType.Name(t) for t in graph.input_layout),
        metadata={key: value for info in message.metadata_props_info for key, value in info.model_info.items()},
        hbm=hbm,
    )


def _load_messages() -> Any:
    path = Path(sysconfig.get_paths()["purelib"]) / "horizon_tc_ui" / "hbdtort" / "runtime_pb2.py"
    if not path.is_file():
        raise BoardError(
            INVALID_MODEL, "the interpreter is not the vendor toolchain's: its model format is unknown here"
        )
    spec = importlib.util.spec_from_file_location("boardlift_runtime_messages", path)
    if spec is None or spec.loader is None:
        raise BoardError(INVALID_MODEL, "the toolchain's model format cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _value(info: Any, runtime: Any) -> Value:
    return Value(info.name, runtime.TensorTypeProto.DataType.Name(info.type.elem_type), tuple(info.type.dim))


def _array(tensor: Any, runtime: Any) -> NDArray[Any]:
    kind = NUMPY_TYPE.get(runtime.TensorTypeProto.DataType.Name(tensor.shape_type.elem_type), np.float32)
    for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        data = getattr(tensor, field)
        if len(data):
            flat: NDArray[Any] = np.array(data).astype(kind)
            shape = tuple(tensor.shape_type.dim)
            return flat.reshape(shape) if shape and int(np.prod(shape)) == flat.size else flat
    return np.zeros(tuple(tensor.shape_type.dim) or (0,), kind)


def _attribute(attribute: Any, runtime: Any) -> Any:
    kind = runtime.AttributeProto.AttributeType.Name(attribute.type)
    if kind == "FLOAT":
        return float(attribute.f)
    if kind == "INT":
        return int(attribute.i)
    if kind == "STRING":
        return attribute.s.decode(errors="replace")
    if kind == "TENSOR":
        return _array(attribute.t, runtime)
    if kind == "FLOATS":
        return [float(v) for v in attribute.floats]
    if kind == "INTS":
        return [int(v) for v in attribute.ints]
    if kind == "STRINGS":
        return [v.decode(errors="replace") for v in attribute.strings]
    return None
