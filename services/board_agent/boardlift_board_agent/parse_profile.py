"""`profiler.log` of `hrt_model_exec perf --profile_path` -> time per node. Pure.

Two JSON objects separated by `***`. The first group of the second object is `processor_latency` on X5 and
`chip_latency` in older releases.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from boardlift.errors import InternalError


@dataclass(frozen=True)
class NodeTime:
    """Time of one node, or of one group, over all frames."""

    name: str
    mean_ms: float
    max_ms: float
    min_ms: float


@dataclass(frozen=True)
class Profile:
    """Where the time goes."""

    fps: float
    mean_ms: float
    frames: int
    threads: int
    model_name: str
    processors: tuple[NodeTime, ...]
    """BPU and CPU."""
    nodes: tuple[NodeTime, ...]
    """Per node, in the tool's order."""
    tasks: tuple[NodeTime, ...]
    """Waiting and running."""


def parse_profile(text: str) -> Profile:
    """Reads profiler.log.

    Raises:
        InternalError: PROFILE_UNREADABLE.
    """
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    try:
        first, second = (json.loads(part) for part in "\n".join(lines).split("***", 1))
        result, condition = first["perf_result"], first["running_condition"]
        return Profile(
            fps=float(result["FPS"]),
            mean_ms=float(result["average_latency"]),
            frames=int(condition["frame_count"]),
            threads=int(condition["thread_num"]),
            model_name=str(condition["model_name"]),
            processors=_times(second.get("processor_latency") or second.get("chip_latency") or {}),
            nodes=_times(second.get("model_latency", {})),
            tasks=_times(second.get("task_latency", {})),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InternalError(
            f"profiler.log can't be read: {error}.",
            reason="PROFILE_UNREADABLE",
            remedy="Measure again; if it repeats, look whether the disk is full.",
        ) from error


def _times(group: dict[str, Any]) -> tuple[NodeTime, ...]:
    rows = tuple(
        NodeTime(name, float(t["avg_time"]), float(t["max_time"]), float(t["min_time"])) for name, t in group.items()
    )
    if any(not math.isfinite(row.mean_ms) or row.mean_ms < 0 for row in rows):
        raise ValueError("a time is negative or not a number")
    return rows
