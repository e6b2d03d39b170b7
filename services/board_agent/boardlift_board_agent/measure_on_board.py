"""Latency on the board, and the CPU baseline beside it."""

from __future__ import annotations

import sys

import numpy as np

from boardlift_board_agent import convert
from boardlift_board_agent.bench import Bench
from boardlift_board_agent.check_latency import discount_simulated, judge_rate, judge_single
from boardlift_board_agent.failures import ToolRun
from boardlift_board_agent.hrt_model_exec import (
    PerfOptions,
    perf_command,
    sampler_command,
)
from boardlift_board_agent.load_samples import save_arrays
from boardlift_board_agent.measure_latency import Measurement, measure_latency, parse_samples
from boardlift_board_agent.statistics import summarize
from boardlift_board_agent.tensor_spec import TensorSpec

NPZ = "application/x-npz"
_BASELINE_S = 20.0
"""Longest time the CPU baseline counts frames."""
_LOAD_S = 100.0
"""More for loading the model and its first calls."""


async def measure_on_board(bench: Bench, tensors: tuple[TensorSpec, ...]) -> None:
    """Latency at every thread count of the plan, judged against the estimate.

    Args:
        bench: the run.
        tensors: the compiled model's tensors.

    Raises:
        ModelRefused, BoardliftError: the tools.
    """
    plan = convert.plan_from(bench.request.perf)
    outputs = sum(int(np.prod(t.valid)) for t in tensors if not t.input and t.dtype.kind == "f")

    async def perf(options: PerfOptions) -> ToolRun:
        return await bench.call(perf_command(bench.tool.program, bench.model, options), bench.limits.perf_s)

    async def sample(options: PerfOptions) -> ToolRun:
        return await bench.call(
            sampler_command(bench.tool.sampler, bench.model, options), bench.limits.perf_s, quiet=True
        )

    for index, threads in enumerate(plan.threads):
        bench.emit.progress(f"perf {threads} threads", 0.6 + 0.3 * index / len(plan.threads))
        measured = await measure_latency(plan, threads, perf, sample if bench.tool.sampler else None)
        raw = None
        if measured.samples_ms is not None:
            raw = await bench.store.put_bytes(save_arrays({"latency_ms": measured.samples_ms}), NPZ)
        bench.result.latency.append(convert.latency_message(measured, bench.watch.simulated, raw))
        _judge(bench, measured, outputs)


def _judge(bench: Bench, measured: Measurement, float_outputs: int) -> None:
    subject = f"{measured.threads} threads"
    if measured.statistics is None:
        text = "The board has no per-frame timer: the tool's mean, minimum and maximum are all there is."
        bench.result.findings.append(
            convert.finding("PERCENTILES_ABSENT", "note", text, subject, "Set BOARDLIFT_SAMPLER.")
        )
    elif not measured.statistics.stable:
        text = f"Latency is unstable: {measured.statistics.why_unstable}"
        bench.result.findings.append(
            convert.finding("LATENCY_UNSTABLE", "warning", text, subject, "Measure again, longer.")
        )
    estimate = bench.request.estimated_latency_us
    if measured.threads == 1:
        verdict = judge_single(
            estimate, float_outputs, measured.statistics.p50_ms if measured.statistics else measured.report.mean_ms
        )
    else:
        verdict = judge_rate(estimate, float_outputs, measured.threads, measured.fps)
    if bench.simulated and verdict.ratio is not None:
        verdict = discount_simulated(verdict)
    if verdict.code.endswith("THAN_ESTIMATED"):
        bench.result.findings.append(
            convert.finding(verdict.code, "warning", verdict.message, subject, "Check heat, clocks and other users.")
        )
    elif verdict.ratio is not None:
        bench.result.findings.append(convert.finding(verdict.code, "note", verdict.message, subject))


async def time_on_cpu(bench: Bench) -> None:
    """The float model in onnxruntime on the same machine, same samples, same statistics; a finding when it can't."""
    request = bench.request
    if not request.float_model.sha256 or not request.heldout.sha256:
        return
    bench.emit.progress("cpu baseline", 0.92)
    model, samples = await bench.store.fetch(request.float_model), await bench.store.fetch(request.heldout)
    plan = convert.plan_from(request.perf)
    limit_s = min(plan.limit_s, _BASELINE_S)
    words = (str(model), str(samples), f"--frames={plan.frames}", f"--limit={limit_s}")
    command = (sys.executable, "-m", "boardlift_board_agent.cpu_baseline", *words)
    run = await bench.tool.run(command, bench.folder, limit_s + _LOAD_S, lambda source, line: None)
    if run.exit_code:
        text = f"The float model was not timed on the CPU: {run.text.strip()[-300:]}"
        bench.result.findings.append(convert.finding("CPU_BASELINE_ABSENT", "note", text, "cpu"))
        return
    times = parse_samples(run.text)
    statistics = summarize(times)
    baseline = bench.result.cpu_baseline
    baseline.raw_samples.CopyFrom(await bench.store.put_bytes(save_arrays({"latency_ms": times}), NPZ))
    baseline.threads, baseline.frames, baseline.stable = 1, statistics.count, statistics.stable
    source = "onnxruntime, one thread"
    baseline.figures.append(convert.figure("fps", 1000 / statistics.mean_ms, "fps", bench.simulated, source))
    baseline.figures.extend(convert.statistics_figures(statistics, bench.simulated, source))
    if not statistics.stable:
        text = f"The CPU baseline is unstable: {statistics.why_unstable}"
        bench.result.findings.append(convert.finding("CPU_BASELINE_UNSTABLE", "note", text, "cpu"))
