"""How a board is to measure -> the request's message."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from boardlift.v1 import board_agent_pb2


def perf_spec(frames: int, threads: Sequence[int], governor: str, sustained_s: float) -> board_agent_pb2.PerfSpec:
    """Convert the options of a measurement; the server refuses what is out of range.

    Args:
        frames: Frames of a latency measurement; 0 means 1000.
        threads: Thread counts to measure; empty means 1 and 2.
        governor: Clock governor to measure under; empty leaves it alone.
        sustained_s: Length of a run under load afterwards; 0 for none.
    """
    spec = board_agent_pb2.PerfSpec(frames=frames, threads=threads, governor=governor)
    if sustained_s:
        spec.sustained_duration.FromTimedelta(timedelta(seconds=sustained_s))
    return spec
