"""Quick stand-ins for the stage services, for tests of the orchestration only; nothing of the product uses them.

One process serves transform, compiler and a board that pulls. Results are made up but well formed. Each run that was
really done, not attached or stored, is one line in the ledger: `done <digest> <stage>`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import uuid
from pathlib import Path
from typing import Any

import grpc
from boardlift.v1 import (
    board_agent_pb2,
    board_agent_pb2_grpc,
    compiler_pb2,
    compiler_pb2_grpc,
    job_pb2,
    job_pb2_grpc,
    toolchain_pb2,
    toolchain_pb2_grpc,
    transform_pb2,
    transform_pb2_grpc,
)
from boardlift_servicekit import channels, logs
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from boardlift_servicekit.consume import Pace
from boardlift_servicekit.dispatcher import Dispatcher
from boardlift_servicekit.executions import Executions, as_responses, execution_id, request_key
from boardlift_servicekit.messaging import board_consumer, connect, pool_consumer
from boardlift_servicekit.server import Host, ServerSettings
from boardlift_servicekit.stage_calls import GrpcRunner

MEASURED = toolchain_pb2.FIGURE_KIND_MEASURED
ESTIMATED = toolchain_pb2.FIGURE_KIND_ESTIMATED
SIMULATED = toolchain_pb2.FIGURE_KIND_SIMULATED
SECONDS = float(os.environ.get("FAKE_SECONDS", "0.05"))
SLOTS = int(os.environ.get("FAKE_SLOTS", "4"))
FAULTS = float(os.environ.get("FAKE_FAULTS", "0"))
FOLDER = Path(os.environ["FAKE_FOLDER"])
LEDGER = Path(os.environ["FAKE_LEDGER"])
BOARD = os.environ["FAKE_BOARD"]
LABELS = dict(pair.split("=") for pair in os.environ.get("FAKE_LABELS", "").split(",") if pair)


def figure(name: str, value: float, unit: str = "1", kind: int = SIMULATED) -> toolchain_pb2.Figure:
    return toolchain_pb2.Figure(name=name, value=value, unit=unit, kind=kind, source="test stand-in")


def compared(error: float) -> list[toolchain_pb2.OutputComparison]:
    figures = [figure("cosine", 1 - error), figure("max_abs", error), figure("mean_abs", error / 3)]
    figures += [figure("l1", error), figure("l2", error), figure("chebyshev", error)]
    return [toolchain_pb2.OutputComparison(output="actions", samples=16, figures=figures)]


class Stages(
    transform_pb2_grpc.TransformServiceServicer,
    compiler_pb2_grpc.CompilerServiceServicer,
    board_agent_pb2_grpc.BoardAgentServiceServicer,
    toolchain_pb2_grpc.ServerServiceServicer,
):
    """All stages."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.executions: Executions[Any] = Executions(FOLDER / "results", store, slots=8, grace_s=5)

    async def GetServerInfo(self, request: Any, context: Any) -> Any:
        return toolchain_pb2.GetServerInfoResponse(name="fakes", slots=SLOTS)

    async def CancelExecution(self, request: Any, context: Any) -> Any:
        stopped = await self.executions.cancel(request.execution_id)
        return toolchain_pb2.CancelExecutionResponse(stopped=stopped)

    async def PrepareDataset(self, request: Any, context: Any) -> Any:
        if request.split.seed == 666:
            failure = toolchain_pb2.StageFailure(code="DATASET_EMPTY", message="No samples.", user_fault=True)
            return transform_pb2.PrepareDatasetResponse(failure=failure)
        part = await self.blob("calibration", request)
        return transform_pb2.PrepareDatasetResponse(
            calibration=part, heldout=part, calibration_samples=64, heldout_samples=16, provenance_json='{"a": 1}'
        )

    async def TransformModel(self, request: Any, context: Any) -> Any:
        blob = await self.blob("transform", request)
        result = transform_pb2.TransformResult(
            model=blob, calibration=blob, heldout=blob, reference_outputs=blob, io_snippet="feed(obs)"
        )
        async for answer in self.stage("transform", request, context, transform_pb2.TransformModelResponse, result):
            yield answer

    async def CheckModel(self, request: Any, context: Any) -> Any:
        result = compiler_pb2.CheckResult(bpu_subgraphs=1, bpu_nodes=5)
        async for answer in self.stage("check", request, context, compiler_pb2.CheckModelResponse, result):
            yield answer

    async def CompileModel(self, request: Any, context: Any) -> Any:
        result = compiler_pb2.CompileResult()
        if request.variant.name == "refused":
            result.failure.CopyFrom(
                toolchain_pb2.StageFailure(code="OPSET_TOO_HIGH", message="Opset 18.", user_fault=True, exit_code=1)
            )
        else:
            blob = await self.blob("compile", request)
            estimate = figure("estimated_latency_us", 100 + len(request.variant.name), "us", ESTIMATED)
            result = compiler_pb2.CompileResult(
                compiled_model=blob, quantized_model=blob, figures=[estimate], bpu_nodes=5, vendor_outputs=compared(0.1)
            )
        async for answer in self.stage("compile", request, context, compiler_pb2.CompileModelResponse, result):
            yield answer

    async def SimulateModel(self, request: Any, context: Any) -> Any:
        check = compiler_pb2.BitCheck(subgraph="g0", tensor="t", samples=4, equal=True)
        result = compiler_pb2.SimulateResult(outputs=compared(0.001), bit_checks=[check], bit_exact=True)
        async for answer in self.stage("simulate", request, context, compiler_pb2.SimulateModelResponse, result):
            yield answer

    async def RunModel(self, request: Any, context: Any) -> Any:
        latency = board_agent_pb2.LatencyResult(
            threads=1, figures=[figure("p50_ms", 1, "ms"), figure("p99_ms", 2, "ms")]
        )
        result = board_agent_pb2.RunResult(
            board=board_agent_pb2.BoardInfo(id=BOARD, simulated=True),
            board_vs_float=compared(0.001),
            board_vs_quantized=compared(0.0),
            latency=[latency],
            engine="compiled",
        )
        async for answer in self.stage("board", request, context, board_agent_pb2.RunModelResponse, result):
            yield answer

    async def stage(self, name: str, request: Any, context: Any, response_type: Any, result: Any) -> Any:
        key = request_key(name, "1", request)

        async def work(emitter: Any) -> Any:
            if (FOLDER / "results" / f"{key}.pb").exists():
                note("again", key, name)
            for part in range(4):
                emitter.progress("work", part / 4)
                emitter.log(f"{name} {part}")
                await asyncio.sleep(SECONDS / 4 * random.uniform(0.5, 1.5))
            if random.random() < FAULTS:
                raise grpc.aio.UsageError("made-up fault")
            note("done", key, name)
            return result

        events = self.executions.run(key, execution_id(context), type(result), work)
        async for answer in as_responses(response_type, events):
            yield answer

    async def blob(self, name: str, request: Any) -> Any:
        digest = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
        return await self.store.put_bytes(f"{name} {digest}".encode(), "text/plain")


def note(what: str, key: str, stage: str) -> None:
    """Write a line to the ledger: `done` for a run to its end, `again` for one whose result lay there already."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{what} {key} {stage}\n")


async def register(stub: Any, boot: str, dispatcher: Dispatcher) -> None:
    info = board_agent_pb2.BoardInfo(id=BOARD, target="rdk-x5", simulated=True, labels=LABELS, boot_id=boot)
    state = board_agent_pb2.BoardState(in_rotation=True, busy_job=dispatcher.busy_job)
    await stub.RegisterBoard(job_pb2.RegisterBoardRequest(board=info, state=state), timeout=5)


async def keep_registered(stub: Any, boot: str, dispatcher: Dispatcher) -> None:
    while True:
        try:
            await register(stub, boot, dispatcher)
        except grpc.aio.AioRpcError as error:
            print("not registered:", error.details(), flush=True)
        await asyncio.sleep(1)


async def main() -> None:
    logs.configure("fakes", "INFO")
    orchestrator = channels.connect(os.environ["FAKE_ORCHESTRATOR"])
    stub = job_pb2_grpc.BoardServiceStub(orchestrator)
    store = RemoteStore(orchestrator, LocalStore(FOLDER / "cache"))
    port = int(os.environ["FAKE_PORT"])
    host = Host("fakes", ServerSettings(listen=f"127.0.0.1:{port}"))
    stages = Stages(store)
    for register_, service in (
        (transform_pb2_grpc.add_TransformServiceServicer_to_server, "TransformService"),
        (compiler_pb2_grpc.add_CompilerServiceServicer_to_server, "CompilerService"),
        (board_agent_pb2_grpc.add_BoardAgentServiceServicer_to_server, "BoardAgentService"),
        (toolchain_pb2_grpc.add_ServerServiceServicer_to_server, "ServerService"),
    ):
        host.add(register_, stages, f"boardlift.v1.{service}")
    client = await connect(os.environ["FAKE_NATS_URL"], BOARD)
    runner = GrpcRunner(channels.connect(f"127.0.0.1:{port}"))
    dispatcher = Dispatcher(
        client,
        store,
        runner,
        worker=BOARD,
        consumers=(board_consumer(BOARD), pool_consumer("rdk-x5")),
        slots=1,
        pace=Pace(heartbeat_s=1, beat_s=0.7),
    )
    registering = asyncio.create_task(keep_registered(stub, uuid.uuid4().hex, dispatcher))
    await dispatcher.start()
    await host.run()
    registering.cancel()


if __name__ == "__main__":
    asyncio.run(main())
