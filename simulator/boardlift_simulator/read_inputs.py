"""Input files -> arrays in valid shape and native type.

Tensors: raw `.bin` of the valid size (the tool pads) or of the aligned size (padding is cut out by stride), or `.txt`
with one number per word. Pictures: raw bytes, NV12 = Y plane then interleaved UV.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .describe_tensors import DDR, TensorFacts
from .errors import CANNOT_OPEN, INVALID_ARGUMENT, BoardError
from .read_model import NUMPY_TYPE


def read_inputs(paths: list[str], facts: list[TensorFacts]) -> dict[str, NDArray[Any]]:
    """Reads one file per input.

    Args:
        paths: files in the model's input order.
        facts: the inputs.

    Returns:
        Input name -> array in valid shape; a flat uint8 array for pyramid pictures (NV12, Y),
        int8 (minus 128) for others.

    Raises:
        BoardError: wrong number of files, a file is absent or has another size than the tensor.
    """
    if len(paths) != len(facts):
        raise BoardError(
            INVALID_ARGUMENT, f"input file number {len(paths)} is not equal to model input number {len(facts)}"
        )
    return {fact.name: _read(Path(path), fact) for path, fact in zip(paths, facts, strict=True)}


def random_inputs(facts: list[TensorFacts], seed: int) -> dict[str, NDArray[Any]]:
    """Random inputs, as the tool makes when none are given."""
    rng = np.random.default_rng(seed)
    feeds: dict[str, NDArray[Any]] = {}
    for fact in facts:
        if fact.image:
            feeds[fact.name] = rng.integers(0, 256, fact.size_bytes).astype(np.uint8)
        elif fact.dtype == "FLOAT":
            feeds[fact.name] = rng.standard_normal(fact.valid).astype(np.float32)
        else:
            feeds[fact.name] = rng.integers(-100, 100, fact.valid).astype(NUMPY_TYPE[fact.dtype])
    return feeds


def _read(path: Path, fact: TensorFacts) -> NDArray[Any]:
    if not path.is_file():
        raise BoardError(CANNOT_OPEN, f"open file {path.name} failed, file does not exist")
    kind = NUMPY_TYPE[fact.dtype]
    if path.suffix == ".txt" and not fact.image:
        values: NDArray[Any] = np.array(path.read_text().split(), dtype=np.float64).astype(kind)
        if values.size != int(np.prod(fact.valid)):
            raise BoardError(
                INVALID_ARGUMENT, f"{path.name}: {values.size} numbers, {fact.name} has shape {fact.valid}"
            )
        return values.reshape(fact.valid)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    if fact.image:
        return _image(path, data, fact)
    dense = int(np.prod(fact.valid)) * np.dtype(kind).itemsize
    if data.size == dense:
        return np.asarray(data.view(kind).reshape(fact.valid))
    if data.size == fact.size_bytes:
        return np.array(np.ndarray(fact.valid, kind, data.tobytes(), strides=fact.stride))
    raise BoardError(
        INVALID_ARGUMENT, f"{path.name} has {data.size} bytes, {fact.name} needs {dense} (aligned {fact.size_bytes})"
    )


def _image(path: Path, data: NDArray[np.uint8], fact: TensorFacts) -> NDArray[Any]:
    nchw = fact.layout.endswith("NCHW")
    height, width = (fact.valid[2], fact.valid[3]) if nchw else (fact.valid[1], fact.valid[2])
    if "NV12" in fact.type:
        if data.size == height * width * 3 // 2:
            return data
        if data.size == fact.size_bytes:
            return data.reshape(height * 3 // 2, -1)[:, :width].reshape(-1)
        raise BoardError(
            INVALID_ARGUMENT, f"{path.name} has {data.size} bytes, NV12 {width}x{height} needs {fact.size_bytes}"
        )
    if data.size != fact.size_bytes:
        raise BoardError(INVALID_ARGUMENT, f"{path.name} has {data.size} bytes, the picture needs {fact.size_bytes}")
    if fact.source != DDR:
        return data
    return (data.reshape(fact.valid).astype(np.int16) - 128).astype(np.int8)
