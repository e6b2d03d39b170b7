"""Parse the reports the tool leaves: subgraph JSON, ``quant_info.json`` and ``hb_model_info``; pure.

All performance numbers here are the compiler's static estimates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from boardlift_compiler.split_log import split_line

MODEL_NAME = re.compile(r"^\*{3,} (.+?) \*{3,}$")
FIELD = re.compile(r"^([A-Za-z_&][\w&/ .-]*?)\s*:+\s+(.*)$")
INPUT_INFO = re.compile(r"^-+input info : (.+?) (end )?-+$")
DURATION = re.compile(r"<?\s*([\d.]+) (us|ms|ns)")
UNITS = {"us": 1.0, "ms": 1000.0, "ns": 0.001}


class ReportError(ValueError):
    """A report file is not what it should be."""


@dataclass(frozen=True)
class LayerCost:
    """Cost of one layer inside a subgraph, from the debug rows of the report. Estimated."""

    layer: str
    """Layer name."""
    operations: int
    """Effective operations."""
    compute_us: float
    """Computing time without DDR, microseconds; "<1 us" counts as 1."""
    transfer_us: float
    """Load and store time, microseconds; overlaps with compute: never add the two."""
    active: str
    """Schedule as printed, e.g. ``0 ~ 57 us (57 us)``."""


@dataclass(frozen=True)
class SubgraphReport:
    """The static report of one BPU subgraph. Estimated."""

    name: str
    """Model name in the report (the subgraph)."""
    march: str
    """Architecture code of the compiler, ``B25E`` for bayes-e."""
    fps: float
    """Frames per second."""
    latency_us: float
    """Latency in microseconds."""
    ddr_bytes: int
    """DDR bytes per frame."""
    operations: int
    """Effective operations per frame."""
    layers: tuple[LayerCost, ...]
    """Per-layer rows; empty unless built with ``debug``."""


def parse_subgraph_report(text: str) -> SubgraphReport:
    """Parse ``*_subgraph_N.json``.

    Raises:
        ReportError: when the text is no such report.
    """
    try:
        summary = json.loads(text)["summary"]
        return SubgraphReport(
            str(summary.get("model name", "")),
            str(summary.get("BPU march", "")),
            float(summary["FPS"]),
            float(summary.get("latency (us)", float(summary.get("latency (ms)", 0)) * 1000)),
            int(summary["DDR bytes per frame"]),
            int(summary.get("BPU OPs per frame (effective)", 0)),
            tuple(_layers(summary.get("layer details", []))),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(f"not a subgraph report: {error!r}") from error


def _layers(rows: list[list[object]]) -> Iterable[LayerCost]:
    for row in rows[1:]:
        cells = [str(c) for c in row] + [""] * 7
        digits = re.sub(r"\D", "", cells[1].split(" ")[0])
        yield LayerCost(cells[0], int(digits or 0), _microseconds(cells[4]), _microseconds(cells[5]), cells[6])


def _microseconds(text: str) -> float:
    match = DURATION.search(text)
    return float(match[1]) * UNITS[match[2]] if match else 0.0


@dataclass(frozen=True)
class NodeQuantization:
    """One entry of ``quant_info.json``."""

    type: str
    """ONNX operator type."""
    inputs: tuple[str, ...]
    """Input tensors."""
    outputs: tuple[str, ...]
    """Output tensors."""
    thresholds: tuple[tuple[float, ...], ...]
    """Per input; several numbers mean per channel; empty when not quantised."""
    cosine: float | None
    """Cosine similarity of the output; None when absent."""


def parse_quant_info(text: str) -> Mapping[str, NodeQuantization]:
    """Parse ``quant_info.json``: node name -> thresholds and cosine.

    Raises:
        ReportError: when the text is no such file.
    """
    try:
        return {
            str(name): NodeQuantization(
                str(entry.get("type", "")),
                tuple(entry.get("inputs", ())),
                tuple(entry.get("outputs", ())),
                tuple(tuple(float(v) for v in t) for t in entry.get("thresholds", ())),
                _cosine(entry.get("cosine_similarity")),
            )
            for name, entry in json.loads(text).items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise ReportError(f"not a quant_info file: {error!r}") from error


def _cosine(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


@dataclass(frozen=True)
class ModelInfo:
    """What ``hb_model_info`` prints."""

    name: str
    """Model name."""
    march: str
    """Architecture, ``bayes-e`` for X5."""
    versions: Mapping[str, str]
    """Tool -> version the model was built with."""
    inputs: Mapping[str, Mapping[str, str]]
    """Per input the options it was built with."""
    fields: Mapping[str, str]
    """All other `key : value` lines."""


def parse_model_info(lines: Iterable[str]) -> ModelInfo:
    """Parse the output of ``hb_model_info``.

    Raises:
        ReportError: when it names no architecture, which is what a damaged or foreign file gives.
    """
    name, current = "", ""
    inputs: dict[str, dict[str, str]] = {}
    plain: dict[str, str] = {}
    last = ""
    for raw in lines:
        for line in split_line(raw):
            last = line.text or last
            if match := MODEL_NAME.match(line.text):
                name = name or match[1]
            elif match := INPUT_INFO.match(line.text):
                current = "" if match[2] else match[1]
                if current:
                    inputs.setdefault(current, {})
            elif match := FIELD.match(line.text):
                target = inputs[current] if current else plain
                target[match[1].strip()] = match[2].strip()
    if "BPU march" not in plain:
        raise ReportError(f"hb_model_info names no architecture: {last[:200]}")
    versions = {k.removesuffix(" version"): v for k, v in plain.items() if k.endswith(" version")}
    return ModelInfo(name, plain["BPU march"], versions, inputs, plain)
