"""Held-out samples through the board: write inputs, run infer, read dumps, dequantise."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from boardlift.errors import InternalError, InvalidInputError
from numpy.typing import NDArray

from boardlift_board_agent.failures import ToolRun, check_run
from boardlift_board_agent.feed_model import input_bytes
from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_board_agent.tensors import dequantize, find_plain_copy, unpack

Array = NDArray[Any]
RunInfer = Callable[[list[Path], Path], Awaitable[ToolRun]]
"""Runs infer on input files into a dump folder."""


@dataclass(frozen=True)
class Inference:
    """The board's answers."""

    outputs: dict[str, Array]
    """Output name -> float32 [n, ...], dequantised."""
    plain_copies: tuple[str, ...]
    """Outputs whose dumped memory shows the plain-copy trace: written without the stride."""
    samples: int
    raw: dict[str, Array]
    """Output name -> native integers or floats [n, ...], before dequantisation."""
    memory: dict[str, tuple[bytes, ...]]
    """Output name -> dumped memory per sample."""


async def run_samples(
    samples: dict[str, Array], tensors: tuple[TensorSpec, ...], work: Path, run: RunInfer, tell: Callable[[int], None]
) -> Inference:
    """Runs every sample.

    Args:
        samples: input name -> [n, ...]; other names are ignored.
        tensors: the compiled model's tensors; its own input order counts, not the caller's.
        work: private folder.
        run: runs the tool.
        tell: receives the number of finished samples.

    Raises:
        InvalidInputError: SAMPLES_INCOMPLETE, or a sample does not fit.
        ModelRefused, BoardliftError: from the tool.
    """
    inputs = [t for t in tensors if t.input]
    outputs = [t for t in tensors if not t.input]
    _require(samples, inputs)
    count = min(len(samples[t.name]) for t in inputs)
    memories: dict[str, list[bytes]] = {t.name: [] for t in outputs}
    dump = work / "dump"
    dump.mkdir(exist_ok=True)
    for index in range(count):
        for old in dump.iterdir():
            old.unlink()
        paths = [work / f"input{position}.bin" for position in range(len(inputs))]
        for path, spec in zip(paths, inputs, strict=True):
            path.write_bytes(input_bytes(samples[spec.name][index], spec))
        check_run(await run(paths, dump))
        for position, spec in enumerate(outputs):
            memories[spec.name].append(_dumped(dump, position, spec))
        tell(index + 1)
    return _read(outputs, memories, count)


def _require(samples: dict[str, Array], inputs: list[TensorSpec]) -> None:
    missing = [t.name for t in inputs if t.name not in samples]
    if missing:
        raise InvalidInputError(
            f"The held-out samples lack the inputs {', '.join(missing)}.",
            reason="SAMPLES_INCOMPLETE",
            remedy="Name the arrays as the model's inputs.",
            metadata={"missing": ",".join(missing), "present": ",".join(sorted(samples))},
        )


def _read(outputs: list[TensorSpec], memories: dict[str, list[bytes]], count: int) -> Inference:
    raw = {t.name: np.stack([unpack(memory, t) for memory in memories[t.name]]) for t in outputs}
    values = {t.name: np.stack([dequantize(sample, t) for sample in raw[t.name]]) for t in outputs}
    plain = sorted(t.name for t in outputs if any(find_plain_copy(memory, t) for memory in memories[t.name]))
    return Inference(values, tuple(plain), count, raw, {name: tuple(m) for name, m in memories.items()})


def _dumped(folder: Path, index: int, spec: TensorSpec) -> bytes:
    name = re.compile(rf"model_infer_output_{index}_.*\.bin")
    files = [p for p in folder.iterdir() if name.fullmatch(p.name)]
    if len(files) != 1:
        raise InternalError(
            f"The tool left {len(files)} dumps of output {index} ({spec.name}).",
            reason="DUMP_MISSING",
            remedy="Look at the tool's log.",
        )
    return files[0].read_bytes()
