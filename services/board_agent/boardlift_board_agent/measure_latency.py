"""Latency of a compiled model: warm-up, then rounds until the median is known well enough or time is up."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np
from boardlift.errors import InternalError
from numpy.typing import NDArray

from boardlift_board_agent.failures import ToolRun, check_run
from boardlift_board_agent.hrt_model_exec import PerfOptions
from boardlift_board_agent.parse_report import PerfReport, parse_perf
from boardlift_board_agent.statistics import LatencyStatistics, summarize

RunPerf = Callable[[PerfOptions], Awaitable[ToolRun]]
MAX_ROUNDS = 8


@dataclass(frozen=True)
class LatencyPlan:
    """How to measure."""

    warmup_frames: int = 50
    frames: int = 1000
    threads: tuple[int, ...] = (1, 2)
    limit_s: float = 60.0
    """Longest time for one thread count, warm-up included."""
    sustained_s: float = 0.0
    """Length of a long run afterwards; 0 for none."""


@dataclass(frozen=True)
class Measurement:
    """Latency at one thread count."""

    threads: int
    report: PerfReport
    """The vendor tool's own figures."""
    statistics: LatencyStatistics | None
    """Of single frames; None when the board has no sampler."""
    samples_ms: NDArray[np.float64] | None
    """Single frames in order."""
    rounds: int
    """Rounds of the sampler."""

    @property
    def fps(self) -> float:
        """Frames per second by the vendor's tool."""
        return self.report.fps


async def measure_latency(plan: LatencyPlan, threads: int, perf: RunPerf, sample: RunPerf | None) -> Measurement:
    """Measures at one thread count.

    Args:
        plan: how.
        threads: thread count.
        perf: runs the vendor's tool.
        sample: runs our per-frame timer; None when there is none.

    Raises:
        ModelRefused, BoardliftError: from the tools.
    """
    begun = time.monotonic()
    frames = plan.frames
    if plan.warmup_frames:
        warm = await perf(PerfOptions(plan.warmup_frames, threads))
        check_run(warm)
        frames = fitting_frames(plan, threads, parse_perf(warm.text).mean_ms)
    run = await perf(PerfOptions(frames, threads))
    check_run(run)
    report = parse_perf(run.text)
    if sample is None:
        return Measurement(threads, report, None, None, 0)
    rounds: list[NDArray[np.float64]] = []
    while True:
        run = await sample(PerfOptions(frames, threads))
        check_run(run)
        rounds.append(parse_samples(run.text))
        samples = np.concatenate(rounds)
        statistics = summarize(samples, len(rounds[0]))
        elapsed = time.monotonic() - begun
        if statistics.stable or len(rounds) >= MAX_ROUNDS or elapsed * (1 + 1 / len(rounds)) > plan.limit_s:
            return Measurement(threads, report, statistics, samples, len(rounds))


def fitting_frames(plan: LatencyPlan, threads: int, mean_ms: float) -> int:
    """Frames of one run, so that the tool's run and one round of the sampler fit into the time limit.

    Args:
        plan: frames asked for and the limit.
        threads: frames at the same time.
        mean_ms: latency of a frame as the warm-up showed it.
    """
    fit = plan.limit_s * 1000 * threads / max(mean_ms, 1e-3) / 2.5
    return max(1, min(plan.frames, int(fit)))


def parse_samples(text: str) -> NDArray[np.float64]:
    """Lines of the sampler -> latencies in milliseconds, float64 [n].

    Raises:
        InternalError: SAMPLER_UNREADABLE when frames are missing or the last line is.
    """
    frames: list[float] = []
    announced, ended = 0, False
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise _unreadable(f"a line is broken: {error}") from error
        announced = int(item.get("frames", announced))
        if "ms" in item:
            frames.append(float(item["ms"]))
        ended = ended or "run_ms" in item
    if not ended or len(frames) != announced or not frames:
        raise _unreadable(f"{len(frames)} of {announced} frames")
    return np.array(frames)


def _unreadable(why: str) -> InternalError:
    return InternalError(
        f"The latency sampler's output is incomplete: {why}.",
        reason="SAMPLER_UNREADABLE",
        remedy="Measure again; if it repeats, look whether the disk is full.",
    )
