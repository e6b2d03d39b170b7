"""The stage: a compiled model on this board. model_info, inference on held-out samples, latency, CPU baseline.

Nothing of the caller's becomes a path: files get names of ours in a private folder that is removed at the end.
"""

from __future__ import annotations

import shutil

from boardlift.errors import InvalidInputError
from boardlift.v1 import board_agent_pb2, toolchain_pb2
from boardlift_servicekit.executions import Emitter

from boardlift_board_agent import convert
from boardlift_board_agent.bench import Bench, Parts, open_desk
from boardlift_board_agent.failures import ModelRefused, check_run
from boardlift_board_agent.hrt_model_exec import model_info_command
from boardlift_board_agent.infer_on_board import MAX_SAMPLES, infer_on_board
from boardlift_board_agent.measure_on_board import measure_on_board, time_on_cpu
from boardlift_board_agent.parse_report import parse_model_info
from boardlift_board_agent.record_board import record_board
from boardlift_board_agent.run_long import run_long
from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_board_agent.watch_board import Snapshot


async def run_model(request: board_agent_pb2.RunModelRequest, parts: Parts, emit: Emitter) -> board_agent_pb2.RunResult:
    """Runs a compiled model on the board.

    Args:
        request: model, samples, references, how to measure.
        parts: artifacts, the board's programs, the board.
        emit: progress and log lines.

    Returns:
        The result; `failure` is set when the runtime refuses the model.

    Raises:
        BoardliftError: the board can not take work (BOARD_UNFIT), artifacts are missing, a tool died or hangs.
    """
    async with open_desk(parts, emit, request.job_id) as desk:
        bench = Bench(**vars(desk), request=request)
        try:
            await _run(bench)
        except ModelRefused as refused:
            bench.result.failure.CopyFrom(convert.refusal_message(refused))
    bench.result.log.CopyFrom(await parts.store.put_bytes("\n".join(bench.log).encode(), "text/plain"))
    return bench.result


async def _run(bench: Bench) -> None:
    # Said before any work is done.
    convert.plan_from(bench.request.perf)
    convert.in_range("samples", bench.request.samples, 0, MAX_SAMPLES)
    bench.watch.governor.check(bench.request.perf.governor)
    bench.emit.progress("fetch", 0.02)
    await _fetch_model(bench)
    tensors = await _describe(bench)
    await infer_on_board(bench, tensors)
    during: list[Snapshot] = []
    with bench.watch.governor.hold(bench.request.perf.governor) as held:
        async with bench.watch.during(during):
            await measure_on_board(bench, tensors)
            await run_long(bench)
        await time_on_cpu(bench)
    if bench.peak_memory_bytes:
        peak = float(bench.peak_memory_bytes)
        bench.result.figures.append(
            convert.figure("tool_peak_memory_bytes", peak, "bytes", bench.simulated, "hrt_model_exec, largest process")
        )
    await record_board(bench, bench.result, bench.request.job_id, held, during)
    bench.result.execution.tools.append(
        toolchain_pb2.ToolchainInfo(
            name="hrt_model_exec",
            version=bench.watch.version.dnn if bench.watch.version else "",
            parts={"hbrt": bench.watch.version.hbrt} if bench.watch.version else {},
            simulated=bench.simulated,
        )
    )


async def _fetch_model(bench: Bench) -> None:
    if not bench.request.compiled_model.sha256:
        raise InvalidInputError(
            "There is no compiled model to run.",
            reason="MODEL_MISSING",
            remedy="Send a compiled model (.bin) with the task.",
        )
    shutil.copyfile(await bench.store.fetch(bench.request.compiled_model), bench.model)
    if bench.request.quantized_model.sha256 and bench.watch.simulated:
        source = await bench.store.fetch(bench.request.quantized_model)
        shutil.copyfile(source, bench.folder / "model_quantized_model.onnx")


async def _describe(bench: Bench) -> tuple[TensorSpec, ...]:
    bench.emit.progress("model_info", 0.05)
    run = await bench.call(model_info_command(bench.tool.program, bench.model), bench.limits.infer_s)
    check_run(run)
    tensors = parse_model_info(run.text)
    bench.result.tensors.extend(convert.tensor_message(t) for t in tensors)
    simulated = bench.watch.simulated
    if run.header.load_ms is not None:
        bench.result.figures.append(
            convert.figure("load_ms", run.header.load_ms, "ms", simulated, "hrt_model_exec model_info")
        )
    if run.header.skew:
        text = f"The board's runtime is {run.header.skew[0]}, the model is built for {run.header.skew[1]}."
        bench.result.findings.append(
            convert.finding("VERSION_SKEW", "error", text, "board", "Update the board's OS image.")
        )
    return tensors
