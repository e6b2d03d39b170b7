"""Read names and shapes of an ONNX model's inputs, without the onnx library."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from boardlift._external_data import _fields, _varint
from boardlift.errors import InvalidInputError

# Field numbers of the public ONNX format.
_GRAPH, _INPUT, _INITIALIZER, _INITIALIZER_NAME = 7, 11, 5, 8
_TYPE, _TENSOR_TYPE, _SHAPE, _DIM = 2, 1, 2, 1


def read_input_shapes(model: Path) -> dict[str, tuple[int, ...]]:
    """Return the inputs that a caller feeds: name -> shape, open dimensions as 0, in the model's order.

    Raises:
        InvalidInputError: The file is not ONNX (`MODEL_UNREADABLE`).
    """
    try:
        with model.open("rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return {name: shape for graph in _bodies(view, _GRAPH) for name, shape in _inputs(graph)}
    except (OSError, ValueError, IndexError) as error:
        raise InvalidInputError(
            f"{model.name} can't be read as an ONNX model: {error}.",
            reason="MODEL_UNREADABLE",
            remedy="Name an .onnx file.",
            metadata={"file": model.name},
        ) from error


def _inputs(graph: memoryview) -> Iterator[tuple[str, tuple[int, ...]]]:
    weights = {bytes(n) for tensor in _bodies(graph, _INITIALIZER) for n in _bodies(tensor, _INITIALIZER_NAME)}
    for item in _bodies(graph, _INPUT):
        name = b"".join(bytes(body) for body in _bodies(item, 1))
        tensors = (tensor for kind in _bodies(item, _TYPE) for tensor in _bodies(kind, _TENSOR_TYPE))
        shapes = (shape for tensor in tensors for shape in _bodies(tensor, _SHAPE))
        if name not in weights:
            yield name.decode("utf-8"), tuple(_size(dim) for shape in shapes for dim in _bodies(shape, _DIM))


def _size(dim: memoryview) -> int:
    """Return a dimension's size; 0 when it is open."""
    if len(dim) < 2 or dim[0] != 0x08:
        return 0
    value, _ = _varint(dim, 1)
    return value if value < 1 << 63 else 0


def _bodies(view: memoryview, wanted: int) -> Iterator[memoryview]:
    return (body for number, body in _fields(view) if number == wanted)
