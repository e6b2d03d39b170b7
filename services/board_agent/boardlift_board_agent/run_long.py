"""A long run under load: latency, heat and clocks over time, and whether the board slows down."""

from __future__ import annotations

import math
import time

import numpy as np

from boardlift_board_agent.bench import Bench
from boardlift_board_agent.convert import figure, finding, plan_from
from boardlift_board_agent.failures import check_run
from boardlift_board_agent.hrt_model_exec import PerfOptions, perf_command, sampler_command
from boardlift_board_agent.load_samples import save_arrays
from boardlift_board_agent.measure_latency import parse_samples
from boardlift_board_agent.parse_report import parse_perf
from boardlift_board_agent.statistics import FEWEST

SLOWDOWN = 1.05
"""Last tenth against first tenth; more than this is worth a warning."""
_ROUND_S = 3.0
"""Length of one round, about."""
_READINGS = ("bpu_c", "cpu_c", "bpu_mhz", "cpu_mhz")


async def run_long(bench: Bench) -> None:
    """Runs rounds until the asked time is over and adds the curves to the result.

    Args:
        bench: the run; nothing happens when its request asks for no long run.

    Raises:
        ModelRefused, BoardliftError: the tools.
    """
    plan = plan_from(bench.request.perf)
    if not plan.sustained_s:
        return
    threads = max(plan.threads)
    options = PerfOptions(min(plan.frames, round_frames(_mean_ms(bench, threads), threads)), threads)
    begun = time.monotonic()
    rows: list[tuple[float, ...]] = []
    while not rows or time.monotonic() - begun < plan.sustained_s:
        latency = await _median_ms(bench, options)
        reading = (await bench.watch.look(running=True)).reading
        passed = time.monotonic() - begun
        values = (getattr(reading, name) for name in _READINGS)
        rows.append((passed, latency, *(math.nan if value is None else float(value) for value in values)))
        bench.emit.progress("sustained run", 0.9 + 0.05 * min(1.0, passed / plan.sustained_s), len(rows))
    await _record(bench, np.array(rows), threads)


def round_frames(mean_ms: float, threads: int) -> int:
    """Frames of a round of a few seconds, so that the curve has points enough and a slow model's round an end.

    Args:
        mean_ms: latency of a frame as measured before; 0 when unknown.
        threads: frames at the same time.
    """
    return max(FEWEST, int(_ROUND_S * 1000 * threads / max(mean_ms, 1e-3)))


def _mean_ms(bench: Bench, threads: int) -> float:
    measured = [item for item in bench.result.latency if item.threads == threads]
    return next((f.value for item in measured for f in item.figures if f.name == "mean_ms"), 0.0)


async def _median_ms(bench: Bench, options: PerfOptions) -> float:
    if bench.tool.sampler:
        command = sampler_command(bench.tool.sampler, bench.model, options)
        run = await bench.call(command, bench.limits.perf_s, quiet=True)
        check_run(run)
        return float(np.median(parse_samples(run.text)))
    run = await bench.call(perf_command(bench.tool.program, bench.model, options), bench.limits.perf_s, quiet=True)
    check_run(run)
    return parse_perf(run.text).mean_ms


async def _record(bench: Bench, rows: np.ndarray, threads: int) -> None:
    names = ("time_s", "latency_ms", *_READINGS)
    curves = {name: rows[:, index] for index, name in enumerate(names)}
    tenth = max(1, len(rows) // 10)
    first, last = (float(np.median(part)) for part in (rows[:tenth, 1], rows[-tenth:, 1]))
    source = f"{len(rows)} rounds, {threads} threads"
    found = {"first_ms": (first, "ms"), "last_ms": (last, "ms"), "slowdown": (last / first, "1")}
    heat, clock = curves["bpu_c"], curves["bpu_mhz"]
    if not np.isnan(heat).all():
        found["bpu_temperature_max"] = (float(np.nanmax(heat)), "C")
    if not np.isnan(clock).all():
        found["bpu_clock_min"] = (float(np.nanmin(clock)), "MHz")
    sustained = bench.result.sustained
    sustained.rounds = len(rows)
    sustained.figures.extend(figure(n, v, unit, bench.simulated, source) for n, (v, unit) in found.items())
    sustained.curves.CopyFrom(await bench.store.put_bytes(save_arrays(curves), "application/x-npz"))
    if last / first > SLOWDOWN:
        text = f"Under load the board slows down by {last / first - 1:.0%} in {rows[-1, 0]:.0f} s."
        bench.result.findings.append(
            finding("SLOWS_DOWN_UNDER_LOAD", "warning", text, "board", "Check cooling and power supply.")
        )
