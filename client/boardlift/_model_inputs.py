"""Read names, shapes and origins of an ONNX model's inputs, and the names of its outputs, without the onnx library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from boardlift._external_data import _fields, _varint
from boardlift._local_files import map_file, model_unreadable

# Field numbers of the public ONNX format.
_GRAPH, _INPUT, _OUTPUT, _INITIALIZER, _INITIALIZER_NAME = 7, 11, 12, 5, 8
_TYPE, _TENSOR_TYPE, _SHAPE, _DIM, _PROPERTY = 2, 1, 2, 1, 4
_ORIGIN = "boardlift.origin"
"""Property in which the transform keeps the name that an input of its own had in the user's model."""


def read_input_origins(model: Path) -> dict[str, str]:
    """Return the inputs that a transform has renamed: name -> name in the model as the user has it.

    Raises:
        InvalidInputError: The file is not ONNX (`MODEL_UNREADABLE`).
    """
    with _open_model(model) as view:
        return {
            _text(item, 1): _text(pair, 2)
            for graph in _bodies(view, _GRAPH)
            for item in _bodies(graph, _INPUT)
            for pair in _bodies(item, _PROPERTY)
            if _text(pair, 1) == _ORIGIN
        }


def read_input_shapes(model: Path) -> dict[str, tuple[int, ...]]:
    """Return the inputs that a caller feeds: name -> shape, open dimensions as 0, in the model's order.

    Raises:
        InvalidInputError: The file is not ONNX (`MODEL_UNREADABLE`).
    """
    with _open_model(model) as view:
        return {name: shape for graph in _bodies(view, _GRAPH) for name, shape in _inputs(graph)}


def read_outputs(model: Path) -> tuple[str, ...]:
    """Return the names of a model's outputs, in its order.

    Raises:
        InvalidInputError: The file is not ONNX (`MODEL_UNREADABLE`).
    """
    with _open_model(model) as view:
        return tuple(_text(item, 1) for graph in _bodies(view, _GRAPH) for item in _bodies(graph, _OUTPUT))


@contextmanager
def _open_model(model: Path) -> Iterator[memoryview]:
    """Map a model; whatever goes wrong in reading it is the file's fault."""
    try:
        yield map_file(model)
    except (OSError, ValueError, IndexError) as error:
        raise model_unreadable(model, error) from error


def _inputs(graph: memoryview) -> Iterator[tuple[str, tuple[int, ...]]]:
    weights = {_text(tensor, _INITIALIZER_NAME) for tensor in _bodies(graph, _INITIALIZER)}
    for item in _bodies(graph, _INPUT):
        name = _text(item, 1)
        tensors = (tensor for kind in _bodies(item, _TYPE) for tensor in _bodies(kind, _TENSOR_TYPE))
        shapes = (shape for tensor in tensors for shape in _bodies(tensor, _SHAPE))
        if name not in weights:
            yield name, tuple(_size(dim) for shape in shapes for dim in _bodies(shape, _DIM))


def _text(message: memoryview, field: int) -> str:
    return b"".join(bytes(body) for body in _bodies(message, field)).decode("utf-8")


def _size(dim: memoryview) -> int:
    """Return a dimension's size; 0 when it is open."""
    if len(dim) < 2 or dim[0] != 0x08:
        return 0
    value, _ = _varint(dim, 1)
    return value if value < 1 << 63 else 0


def _bodies(view: memoryview, wanted: int) -> Iterator[memoryview]:
    return (body for number, body in _fields(view) if number == wanted)
