"""Two compiled models in turns on one board, ABAB..., and which is faster. Drift of the board moves both alike."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from boardlift.errors import InvalidInputError
from boardlift.v1 import board_agent_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.executions import Emitter

from boardlift_board_agent.bench import Desk, Parts, open_desk
from boardlift_board_agent.convert import figure, in_range, refusal_message
from boardlift_board_agent.failures import ModelRefused, check_run
from boardlift_board_agent.hrt_model_exec import MAX_THREADS, PerfOptions, perf_command, sampler_command
from boardlift_board_agent.measure_latency import parse_samples
from boardlift_board_agent.parse_report import parse_perf
from boardlift_board_agent.record_board import record_board
from boardlift_board_agent.statistics import compare_rounds
from boardlift_board_agent.watch_board import Snapshot

_Verdict = board_agent_pb2.CompareResult


async def compare_models(
    request: board_agent_pb2.CompareModelsRequest, parts: Parts, emit: Emitter
) -> board_agent_pb2.CompareResult:
    """Measures in turns and decides.

    Args:
        request: the models and how often.
        parts: artifacts, the board's programs, the board.
        emit: progress.

    Returns:
        The verdict with its interval; `failure` when the runtime refuses a model.

    Raises:
        BoardliftError: the board takes no work, artifacts are missing, a tool died.
    """
    async with open_desk(parts, emit, request.job_id) as desk:
        during: list[Snapshot] = []
        with desk.watch.governor.hold(request.governor) as held:
            async with desk.watch.during(during):
                result = await _compare(request, desk)
        await record_board(desk, result, request.job_id, held, during)
        return result


async def _compare(request: board_agent_pb2.CompareModelsRequest, desk: Desk) -> board_agent_pb2.CompareResult:
    result = board_agent_pb2.CompareResult()
    rounds = request.rounds or 10
    options = PerfOptions(request.frames or 200, request.threads or 1)
    in_range("rounds", rounds, 2, 100)
    in_range("frames", options.frames, 1, 100_000)
    in_range("threads", options.threads, 1, MAX_THREADS)
    models = [await _fetch(desk.store, desk.folder, request, name) for name in ("first_model", "second_model")]
    medians: tuple[list[float], list[float]] = ([], [])
    try:
        for turn in range(rounds):
            for index, model in enumerate(models):
                medians[index].append(await _median_ms(desk, model, options))
            desk.emit.progress("rounds", (turn + 1) / rounds, turn + 1, rounds)
    except ModelRefused as refused:
        result.failure.CopyFrom(refusal_message(refused))
        return result
    first, second = (np.array(series) for series in medians)
    difference, low, high = compare_rounds(first, second)
    result.verdict = (
        _Verdict.VERDICT_SECOND_FASTER
        if high < 0
        else _Verdict.VERDICT_FIRST_FASTER
        if low > 0
        else _Verdict.VERDICT_UNDECIDED
    )
    result.first_rounds_ms.extend(first.tolist())
    result.second_rounds_ms.extend(second.tolist())
    source = f"{rounds} interleaved rounds"
    for name, value in (("difference", difference), ("difference_low", low), ("difference_high", high)):
        result.figures.append(figure(name, value, "1", desk.simulated, source))
    for name, value in (("first_ms", float(np.median(first))), ("second_ms", float(np.median(second)))):
        result.figures.append(figure(name, value, "ms", desk.simulated, source))
    return result


async def _fetch(store: ArtifactStore, folder: Path, request: board_agent_pb2.CompareModelsRequest, name: str) -> Path:
    reference = getattr(request, name)
    if not reference.sha256:
        raise InvalidInputError(
            f"{name} is missing.",
            reason="MODEL_MISSING",
            remedy="Name a compiled model for both sides.",
            metadata={"field": name},
        )
    target = folder / f"{name}.bin"
    shutil.copyfile(await store.fetch(reference), target)
    return target


async def _median_ms(desk: Desk, model: Path, options: PerfOptions) -> float:
    """Median of single frames where the board has a sampler, else the tool's mean."""
    if desk.tool.sampler:
        run = await desk.call(sampler_command(desk.tool.sampler, model, options), desk.limits.perf_s, quiet=True)
        check_run(run)
        return float(np.median(parse_samples(run.text)))
    run = await desk.call(perf_command(desk.tool.program, model, options), desk.limits.perf_s)
    check_run(run)
    return parse_perf(run.text).mean_ms
