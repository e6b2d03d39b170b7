"""The toolchain's own programs for BPU code.

`hbdk-disas` says what a subgraph is, `hbdk-perf` what it costs, `hbdk-sim` what it computes. Found beside the
interpreter or on PATH; started with a clean environment and a time limit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import TASK_FAILED, BoardError
from .remember import remember

_ELEMENT = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "int32": np.int32, "float32": np.float32}
_LIMIT_S = 600
_SUBGRAPH_KEYS = ("model name", "march", "input features", "output features")


@dataclass(frozen=True)
class Feature:
    """A tensor at the edge of a subgraph as it lies in the BPU's memory."""

    name: str
    valid: tuple[int, ...]
    aligned: tuple[int, ...]
    element: str
    """`int8`, `int16`, `int32`, ..."""
    size_bytes: int
    """Memory it occupies, padding included."""
    source: str
    """`DDR`, `pyramid`, `resizer`; empty for outputs."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Numpy type of one element."""
        return np.dtype(_ELEMENT[self.element])

    @property
    def stride(self) -> tuple[int, ...]:
        """Bytes from one index to the next per dimension, innermost last."""
        step = self.dtype.itemsize
        strides = []
        for extent in reversed(self.aligned):
            strides.append(step)
            step *= extent
        return tuple(reversed(strides))


@dataclass(frozen=True)
class Subgraph:
    """One BPU subgraph of a model."""

    name: str
    march: str
    inputs: tuple[Feature, ...]
    outputs: tuple[Feature, ...]


def find_tool(name: str) -> str:
    """Finds a program of the toolchain that runs us.

    Raises:
        BoardError: it is not there.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if not found:
        raise BoardError(TASK_FAILED, f"{name} of the vendor toolchain is not beside the interpreter nor on PATH")
    return found


def describe_subgraphs(hbm: Path, work: Path) -> tuple[Subgraph, ...]:
    """Reads names, shapes, padding and sizes of all subgraphs.

    Args:
        hbm: file with the packed BPU code.
        work: folder for the tool's report.

    Returns:
        The subgraphs in file order.

    Raises:
        BoardError: the tool failed.
    """
    tool = find_tool("hbdk-disas")

    def ask() -> list[dict[str, Any]]:
        report = work / "disas.json"
        _run([tool, "--json", str(hbm), "-o", str(report)], work)
        return [{key: item[key] for key in _SUBGRAPH_KEYS} for item in json.loads(report.read_text())]

    return tuple(_subgraph(item) for item in remember(tool, hbm, ask))


def estimate_latency_us(hbm: Path, work: Path) -> dict[str, float]:
    """The vendor's static latency estimate per subgraph in microseconds; nothing runs.

    Raises:
        BoardError: the tool failed or wrote no figure.
    """
    tool = find_tool("hbdk-perf")

    def ask() -> dict[str, float]:
        folder = work / "perf"
        folder.mkdir(exist_ok=True)
        _run([tool, str(hbm), "-o", str(folder)], work)
        summaries = [json.loads(report.read_text())["summary"] for report in sorted(folder.glob("*.json"))]
        if not summaries:
            raise BoardError(TASK_FAILED, "the vendor's estimator wrote no report")
        return {str(summary["model name"]): float(summary["latency (us)"]) for summary in summaries}

    return dict(remember(tool, hbm, ask))


def run_subgraph(hbm: Path, graph: Subgraph, feeds: list[NDArray[Any]], work: Path) -> list[NDArray[Any]]:
    """Executes one subgraph's compiled code.

    Args:
        hbm: file with the packed BPU code.
        graph: which subgraph.
        feeds: one array per input in the subgraph's order, valid shape, native dtype; flat uint8 for NV12 and Y.
        work: folder for the exchange files.

    Returns:
        One array per output, valid shape, native dtype.

    Raises:
        BoardError: the vendor's simulator failed or wrote another amount of values than the shape says.
    """
    out = work / f"out_{graph.name}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    paths = []
    for index, (feed, feature) in enumerate(zip(feeds, graph.inputs, strict=True)):
        image = feature.source.lower() not in ("ddr", "")
        suffix = ".bin" if not image else ".y" if feature.valid[-1] == 1 else ".yuv"
        path = work / f"in_{graph.name}_{index}{suffix}"
        path.write_bytes(np.ascontiguousarray(feed).tobytes())
        paths.append(str(path))
    command = [find_tool("hbdk-sim"), "-f", str(hbm), "-n", graph.name, "-i", ",".join(paths), "-o", str(out)]
    _run(command, work)
    return [_read_output(out, index, feature) for index, feature in enumerate(graph.outputs)]


def _read_output(folder: Path, index: int, feature: Feature) -> NDArray[Any]:
    files = sorted(folder.glob(f"hbdk_output{index}_*elem_int.txt"))
    if len(files) != 1:
        raise BoardError(TASK_FAILED, f"the vendor's simulator wrote {len(files)} files for {feature.name}")
    lines = [line for line in files[0].read_text().splitlines() if not line.startswith("#")]
    values = np.array(" ".join(lines).split(), dtype=np.int64)
    if values.size != int(np.prod(feature.valid)):
        raise BoardError(TASK_FAILED, f"{feature.name}: {values.size} values, shape {feature.valid}")
    return values.astype(feature.dtype).reshape(feature.valid)


def _subgraph(item: dict[str, Any]) -> Subgraph:
    return Subgraph(
        name=item["model name"],
        march=item["march"],
        inputs=tuple(_feature(f) for f in item["input features"]),
        outputs=tuple(_feature(f) for f in item["output features"]),
    )


def _feature(item: dict[str, Any]) -> Feature:
    return Feature(
        name=item["feature name"],
        valid=tuple(item["valid dim"]),
        aligned=tuple(item["aligned dim"]),
        element=item["element type name"],
        size_bytes=int(item["occupied memory size"]),
        source=item.get("input source", ""),
    )


def _run(command: list[str], work: Path) -> None:
    bin_dir = str(Path(command[0]).parent)
    environment = {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": str(work), "TMPDIR": str(work), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BoardError(TASK_FAILED, f"{Path(command[0]).name} took longer than {_LIMIT_S} s") from error
    if done.returncode:
        tail = (done.stdout + done.stderr).decode(errors="replace").strip()[-400:]
        raise BoardError(TASK_FAILED, f"{Path(command[0]).name} exit {done.returncode}: {tail}")
