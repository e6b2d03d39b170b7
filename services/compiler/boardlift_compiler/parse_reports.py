"""Parse the reports the tool leaves: subgraph JSON and ``quant_info.json``; pure.

All performance numbers here are the compiler's static estimates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
            _latency_us(summary),
            int(summary["DDR bytes per frame"]),
            int(summary.get("BPU OPs per frame (effective)", 0)),
            tuple(_layers(summary.get("layer details", []))),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReportError(f"not a subgraph report: {error!r}") from error


def _layers(rows: list[list[object]]) -> Iterable[LayerCost]:
    for row in rows[1:]:
        cells = [str(c) for c in row] + [""] * 7
        digits = re.sub(r"\D", "", cells[1].split(" ")[0])
        yield LayerCost(cells[0], int(digits or 0), _microseconds(cells[4]), _microseconds(cells[5]), cells[6])


def _latency_us(summary: Mapping[str, object]) -> float:
    if "latency (us)" in summary:
        return float(str(summary["latency (us)"]))
    return float(str(summary["latency (ms)"])) * 1000


def _microseconds(text: str) -> float:
    """Read ``57 us``, ``<1 us`` or, for a layer that moves nothing, ``0``."""
    match = DURATION.search(text)
    if match is None and text.strip() != "0":
        raise ValueError(f"{text!r} is no duration")  # 0 would make the layer free
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
