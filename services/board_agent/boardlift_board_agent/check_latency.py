"""Measured against estimated: does this board run as boards of its kind do? Pure.

Two threads keep the BPU busy, so their rate approaches the compiler's estimate (0.93 to 1.01 of it on fourteen
published models). One thread pays a host cost on top: about 0.27 ms plus 2.44 ms per million float outputs. Models
whose host cost dominates can not be judged by the rate.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

RATE_LOW, RATE_HIGH = 0.90, 1.03
HOST_BASE_MS, HOST_MS_PER_MILLION = 0.27, 2.44
SINGLE_TOLERANCE_MS = 1.3
"""Worst published deviation of the relation, leaving one model out."""


@dataclass(frozen=True)
class LatencyVerdict:
    """What the comparison says."""

    code: str
    """AS_ESTIMATED, SLOWER_THAN_ESTIMATED, FASTER_THAN_ESTIMATED, NOT_JUDGED or ESTIMATE_NOT_TESTED."""
    message: str
    ratio: float | None
    """Measured rate / estimated rate, or measured latency / expected latency."""


def expected_single_ms(estimate_us: float, float_outputs: int) -> float:
    """Single-thread latency the published relation expects."""
    return estimate_us / 1000 + HOST_BASE_MS + HOST_MS_PER_MILLION * float_outputs / 1e6


def judge_rate(estimate_us: float, float_outputs: int, threads: int, fps: float) -> LatencyVerdict:
    """Compares the rate at two or more threads with the estimate.

    Args:
        estimate_us: the compiler's estimate of all subgraphs together; 0 when unknown.
        float_outputs: float32 elements per frame.
        threads: thread count of the measurement.
        fps: measured rate.
    """
    if estimate_us <= 0 or threads < 2:
        return LatencyVerdict("NOT_JUDGED", "There is no estimate or no measurement with two threads.", None)
    single = expected_single_ms(estimate_us, float_outputs)
    if single / threads > estimate_us / 1000:
        text = f"Host work dominates ({single:.2f} ms expected, {estimate_us / 1000:.2f} ms of it on the BPU)."
        return LatencyVerdict("NOT_JUDGED", text, fps * estimate_us / 1e6)
    ratio = fps * estimate_us / 1e6
    if ratio < RATE_LOW:
        text = f"{ratio:.2f} of the estimated rate; 0.93 to 1.01 is normal: the board is throttled, shared or sick."
        return LatencyVerdict("SLOWER_THAN_ESTIMATED", text, ratio)
    if ratio > RATE_HIGH:
        text = f"{ratio:.2f} of the estimated rate; 0.93 to 1.01 is normal: is the BPU overclocked?"
        return LatencyVerdict("FASTER_THAN_ESTIMATED", text, ratio)
    return LatencyVerdict("AS_ESTIMATED", f"{ratio:.2f} of the estimated rate.", ratio)


def judge_single(estimate_us: float, float_outputs: int, median_ms: float) -> LatencyVerdict:
    """Compares single-thread latency with the published relation.

    Args:
        estimate_us: the compiler's estimate; 0 when unknown.
        float_outputs: float32 elements per frame.
        median_ms: measured median.
    """
    if estimate_us <= 0:
        return LatencyVerdict("NOT_JUDGED", "There is no estimate.", None)
    expected = expected_single_ms(estimate_us, float_outputs)
    ratio = median_ms / expected
    if median_ms > expected + SINGLE_TOLERANCE_MS or ratio > 2.0:
        text = f"{median_ms:.2f} ms where {expected:.2f} ms are expected: the board is throttled, shared or sick."
        return LatencyVerdict("SLOWER_THAN_ESTIMATED", text, ratio)
    if ratio < 0.5:
        text = f"{median_ms:.2f} ms where {expected:.2f} ms are expected: is the estimate that of another model?"
        return LatencyVerdict("FASTER_THAN_ESTIMATED", text, ratio)
    return LatencyVerdict("AS_ESTIMATED", f"{median_ms:.2f} ms, {expected:.2f} ms expected.", ratio)


def discount_simulated(verdict: LatencyVerdict) -> LatencyVerdict:
    """What a verdict is worth on a simulated board, whose latency is the estimate itself plus a stated host cost.

    Agreement proves nothing there; only a deviation says something, namely that the stand-in plays a sick board.

    Args:
        verdict: as if the figures were measured.
    """
    if verdict.code.endswith("THAN_ESTIMATED"):
        return dataclasses.replace(verdict, message=f"Simulated: {verdict.message}")
    text = f"Simulated: {verdict.message} A simulated board's latency comes from the estimate: this proves nothing."
    return LatencyVerdict("ESTIMATE_NOT_TESTED", text, verdict.ratio)
