"""Find the weight files an ONNX model keeps outside itself, without the onnx library.

A model is a protobuf message; only the few fields on the way to `TensorProto.external_data` are followed, everything
else is stepped over. So a client needs no model library, and a large file costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from boardlift._local_files import map_file, model_unreadable
from boardlift.errors import InvalidInputError

# Message -> field number -> message to walk into.
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "function": {7: "node"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "tensor": {13: "entry"},
}
_MAX_DEPTH = 64


def find_external_files(model: Path) -> dict[str, Path]:
    """Return the external files of a model: name as the model spells it -> path beside the model.

    Raises:
        InvalidInputError: The file is not ONNX (`MODEL_UNREADABLE`), a name leaves the model's folder
            (`EXTERNAL_DATA_OUTSIDE`), or a file is missing (`EXTERNAL_DATA_MISSING`).
    """
    try:
        names = sorted(set(_locations(map_file(model), "model", 0)))
    except (OSError, ValueError, IndexError) as error:
        raise model_unreadable(model, error) from error
    return {name: _resolve(model, name) for name in names}


def _resolve(model: Path, name: str) -> Path:
    plain = PurePosixPath(name)
    if plain.is_absolute() or ".." in plain.parts or "\\" in name:
        raise InvalidInputError(
            f"{model.name} names weights outside its folder: {name}.",
            reason="EXTERNAL_DATA_OUTSIDE",
            remedy="Export the model again with its weight files beside it.",
            metadata={"file": name},
        )
    path = model.parent / plain
    if not path.is_file():
        raise InvalidInputError(
            f"{model.name} keeps weights in {name}, which is not there.",
            reason="EXTERNAL_DATA_MISSING",
            remedy=f"Put {name} beside {model.name}.",
            metadata={"file": name},
        )
    return path


def _locations(view: memoryview, message: str, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise ValueError("graphs are nested too deeply")
    wanted = _FIELDS[message]
    for number, body in _fields(view):
        kind = wanted.get(number)
        if kind == "entry":
            entry = {field: bytes(text) for field, text in _fields(body)}
            if entry.get(1) == b"location":
                yield entry.get(2, b"").decode("utf-8")
        elif kind:
            yield from _locations(body, kind, depth + 1)


def _fields(view: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and body of the length-delimited fields of a message."""
    position = 0
    while position < len(view):
        tag, position = _varint(view, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            _, position = _varint(view, position)
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        elif wire == 2:
            length, position = _varint(view, position)
            if position + length > len(view):
                raise ValueError("it is cut off")
            yield number, view[position : position + length]
            position += length
        else:
            raise ValueError("it is not a protobuf message")


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("it is not a protobuf message")
