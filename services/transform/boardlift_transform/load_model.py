"""Reading a model that may be broken or hostile: bounded, checked, named errors, nothing written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from boardlift_transform.check_graph import check_graph
from boardlift_transform.dense_weights import densify
from boardlift_transform.park_weights import PARK_BYTES
from boardlift_transform.refusal import Refusal
from boardlift_transform.write_model import copy_fields

MAX_MODEL_BYTES = (1 << 31) - (1 << 20)


@dataclass
class LoadedModel:
    """A model as the user has it, checked, with external weights loaded."""

    proto: onnx.ModelProto
    """The whole model; never edited."""
    sha256: str
    """Digest of the file's bytes."""
    owned: bool = False
    """True when nobody else holds the proto, so that its weights may be moved out."""

    def move_to_ir(self) -> ir.Model:
        """The graph with the weights moved out of the proto, which keeps their names, types and shapes only.

        The weights are copied one by one and the proto that held them is given up, since a protobuf frees nothing
        before it goes as a whole. Copies when not owned.
        """
        if not self.owned:
            return self.to_ir()
        moved = {}
        bare, graph = onnx.ModelProto(), onnx.GraphProto()
        copy_fields(self.proto, bare, "graph")
        copy_fields(self.proto.graph, graph, "initializer")
        for tensor in self.proto.graph.initializer:
            if len(tensor.raw_data) < PARK_BYTES:
                graph.initializer.append(tensor)
                continue
            moved[tensor.name] = ir.Tensor(ir.from_proto(tensor).numpy(), name=tensor.name)
            graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        bare.graph.CopyFrom(graph)
        self.proto = bare
        model = self.to_ir()
        for name, weight in moved.items():
            model.graph.initializers[name].const_value = weight
        return model

    def to_ir(self) -> ir.Model:
        """A fresh editable graph; weights are shared with the proto, not copied.

        Raises:
            Refusal: MODEL_CORRUPT, for types that do not exist.
        """
        try:
            return ir.from_proto(self.proto)
        except ir.serde.SerdeError as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            raise Refusal(
                "MODEL_CORRUPT",
                f"the graph holds what ONNX does not know: {str(cause)[:200]}",
                remedy="export it again",
            ) from error


def load_model(source: onnx.ModelProto | bytes | str | Path, external: Mapping[str, Path] | None = None) -> LoadedModel:
    """Read and check a model.

    Args:
        source: The model, its bytes, or the path of its file.
        external: External weight files by the name the model gives them. For a path, files beside it are found by
        themselves.

    Raises:
        Refusal: MODEL_TOO_LARGE, MODEL_CORRUPT, EXTERNAL_DATA_*, ATTRIBUTE_INVALID, or one of `check_graph`.
    """
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        proto, data = source, b""
        digest = ""
    else:
        if not isinstance(source, bytes):
            folder = Path(source).parent
            source = _read(Path(source))
        proto, data = _parse(source), source
        digest = hashlib.sha256(data).hexdigest()
    load_external(proto, folder, external or {})
    if not digest:
        digest = hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()
    checked = densify(check_graph(proto))
    _check_flags(checked)
    return LoadedModel(checked, digest, owned=bool(data) or checked is not proto)


def _check_flags(model: onnx.ModelProto) -> None:
    """Flags of Gemm are 0 or 1: onnx and onnxruntime read other numbers differently, so no result could be trusted."""
    for node in model.graph.node:
        for attr in node.attribute if node.op_type == "Gemm" else ():
            if attr.name in ("transA", "transB") and attr.i not in (0, 1):
                raise Refusal(
                    "ATTRIBUTE_INVALID",
                    f"node {node.name or node.op_type}: {attr.name} is {attr.i}, not 0 or 1",
                    remedy="the file is damaged: export it again",
                    metadata={"node": node.name or node.op_type},
                )


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_MODEL_BYTES:
            raise _too_large(size)
        return path.read_bytes()
    except OSError as error:
        raise Refusal(
            "MODEL_NOT_READABLE", f"cannot read {path.name}: {error.strerror}", metadata={"file": path.name}
        ) from error


def _too_large(size: int) -> Refusal:
    return Refusal(
        "MODEL_TOO_LARGE",
        f"the model has {size} bytes, the limit of one protobuf is {MAX_MODEL_BYTES}",
        remedy="store the weights as external data",
        metadata={"size_bytes": size},
    )


def _parse(data: bytes) -> onnx.ModelProto:
    if len(data) > MAX_MODEL_BYTES:
        raise _too_large(len(data))
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RecursionError, ValueError) as error:
        raise Refusal(
            "MODEL_CORRUPT", "the file is no ONNX model, or it is damaged or cut off", remedy="export it again"
        ) from error
    if not proto.HasField("graph"):
        raise Refusal("MODEL_CORRUPT", "the file holds no graph", remedy="export it again")
    return proto


def load_external(proto: onnx.ModelProto, folder: Path | None, files: Mapping[str, Path]) -> None:
    """Read external tensors into the model, wherever they are; every path is checked before it is opened.

    Raises:
        Refusal: EXTERNAL_DATA_PATH for absolute paths, `..` and symlinks; EXTERNAL_DATA_MISSING; EXTERNAL_DATA_RANGE.
    """
    total = 0
    for tensor in _tensors(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        path = _external_path(location, folder, files)
        try:
            offset, length = int(entries.get("offset", "0")), int(entries.get("length", "-1"))
        except ValueError:
            raise _range(tensor.name, location) from None
        size = path.stat().st_size
        length = size - offset if length < 0 else length
        if offset < 0 or length < 0 or offset + length > size:
            raise _range(tensor.name, location)
        total += length
        if total > MAX_MODEL_BYTES:
            raise _too_large(total)
        with path.open("rb") as handle:
            handle.seek(offset)
            tensor.raw_data = handle.read(length)
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a model: weights of graphs at any depth, sparse ones, attributes, those of functions too."""
    graphs, nodes = [proto.graph], [n for f in proto.functions for n in f.node]
    while graphs or nodes:
        while nodes:
            for attr in nodes.pop().attribute:
                yield from (attr.t, *attr.tensors)
                for sparse in (attr.sparse_tensor, *attr.sparse_tensors):
                    yield from (sparse.values, sparse.indices)
                graphs += [*([attr.g] if attr.HasField("g") else []), *attr.graphs]
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            nodes += graph.node


def _range(name: str, location: str) -> Refusal:
    return Refusal(
        "EXTERNAL_DATA_RANGE",
        f"tensor {name} points outside of {location!r}",
        remedy="export it again",
        metadata={"tensor": name, "location": location},
    )


def _external_path(location: str, folder: Path | None, files: Mapping[str, Path]) -> Path:
    if location in files:
        return files[location]
    parts = Path(location).parts
    if not location or Path(location).is_absolute() or ".." in parts or "\\" in location or "\x00" in location:
        raise Refusal(
            "EXTERNAL_DATA_PATH",
            f"external data may not lie at {location!r}",
            remedy="keep the weight file beside the model and name it without folders",
            metadata={"location": location},
        )
    path = folder / location if folder is not None else None
    if path is not None and _has_symlink(folder, parts):
        raise Refusal(
            "EXTERNAL_DATA_PATH",
            f"external data {location!r} is a symbolic link",
            remedy="copy the weight file beside the model",
            metadata={"location": location},
        )
    if path is None or not path.is_file():
        raise Refusal(
            "EXTERNAL_DATA_MISSING",
            f"the weight file {location!r} is missing",
            remedy="give it with the model",
            metadata={"location": location},
        )
    return path


def _has_symlink(folder: Path | None, parts: tuple[str, ...]) -> bool:
    path = folder or Path()
    for part in parts:
        path = path / part
        if path.is_symlink():
            return True
    return False
