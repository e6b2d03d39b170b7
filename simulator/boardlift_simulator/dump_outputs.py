"""Outputs -> dump files `model_infer_output_{index}_{name}.bin|txt`, padded memory as the board holds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .describe_tensors import TensorFacts
from .errors import TASK_FAILED, BoardError
from .read_flags import Options


def to_memory(values: NDArray[Any], fact: TensorFacts) -> bytes:
    """Lays a tensor out by its strides.

    Args:
        values: valid shape.
        fact: the tensor; its aligned shape and stride decide the place of each element.

    Returns:
        `fact.size_bytes` bytes, padding zero.
    """
    memory = np.zeros(fact.size_bytes, np.uint8)
    np.ndarray(fact.valid, values.dtype, memory.data, strides=fact.stride)[...] = values
    return memory.tobytes()


def dump_outputs(
    outputs: dict[str, NDArray[Any]], facts: list[TensorFacts], folder: Path, options: Options, dense: bool, full: bool
) -> list[Path]:
    """Writes one file per output.

    Args:
        outputs: by name, valid shape.
        facts: the outputs.
        folder: where to.
        options: dump_format, dump_precision, dump_txt_axis and hybrid_dequantize_process decide the form.
        dense: ignore the strides (the memcpy mistake, on demand).
        full: behave as if the disk filled up.

    Returns:
        The files.

    Raises:
        BoardError: a file cannot be written.
    """
    paths = []
    for index, fact in enumerate(facts):
        values = np.asarray(outputs[fact.name])
        stem = f"model_infer_output_{index}_{re.sub(r'[^A-Za-z0-9_.-]', '_', fact.name)}"
        if options.text["dump_format"] == "txt":
            path, data = folder / f"{stem}.txt", _text(values, fact, options).encode()
        else:
            memory = to_memory(values, fact)
            if dense:
                raw = np.ascontiguousarray(values).tobytes()
                memory = raw + bytes(len(memory) - len(raw))
            path, data = folder / f"{stem}.bin", memory
        try:
            path.write_bytes(data[: len(data) // 2] if full else data)
        except OSError as error:
            raise BoardError(TASK_FAILED, f"write {path.name} failed: {error.strerror}") from error
        if full:
            raise BoardError(TASK_FAILED, f"write {path.name} failed: No space left on device")
        paths.append(path)
    return paths


def _text(values: NDArray[Any], fact: TensorFacts, options: Options) -> str:
    if options.switch["hybrid_dequantize_process"] and fact.scale:
        shape = [1] * values.ndim
        if len(fact.scale) > 1:
            shape[fact.axis] = len(fact.scale)
        values = values.astype(np.float32) * np.array(fact.scale, np.float32).reshape(shape)
    axis = options.number["dump_txt_axis"]
    width = int(np.prod(values.shape[axis - 1 :], dtype=int)) if 0 < axis <= values.ndim else values.size
    rows = values.reshape(-1, max(1, width))
    precision = options.number["dump_precision"]
    form = "d" if values.dtype.kind in "iu" else f".{precision}f"
    return "\n".join(" ".join(format(v, form) for v in row.tolist()) for row in rows) + "\n"
