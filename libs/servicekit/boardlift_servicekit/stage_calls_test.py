from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from boardlift.errors import CancelledError
from boardlift.v1 import queue_pb2, toolchain_pb2, toolchain_pb2_grpc, transform_pb2, transform_pb2_grpc

from boardlift_servicekit import channels
from boardlift_servicekit.server import Host, ServerSettings
from boardlift_servicekit.stage_calls import GrpcRunner

TASK = queue_pb2.StageTask(job_id="j", stage="ingest", attempt=1, ingest=transform_pb2.PrepareDatasetRequest())


class Service(transform_pb2_grpc.TransformServiceServicer, toolchain_pb2_grpc.ServerServiceServicer):
    """Answers when it is let go, and never cancels anything by itself."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.calls = 0

    async def PrepareDataset(self, request: Any, context: Any) -> Any:
        self.calls += 1
        await self.go.wait()
        return transform_pb2.PrepareDatasetResponse(heldout_samples=7)

    async def CancelExecution(self, request: Any, context: Any) -> Any:
        return toolchain_pb2.CancelExecutionResponse(stopped=False)


class Lab:
    def __init__(self, service: Service, runner: GrpcRunner) -> None:
        self.service, self.runner = service, runner

    async def begin(self) -> asyncio.Task[Any]:
        """Begin a run of the task and wait until the service has it."""
        calls = self.service.calls
        running = asyncio.create_task(self.runner.run(TASK, emit))
        while self.service.calls == calls:
            await asyncio.sleep(0.01)
        return running


async def emit(event: Any) -> None:
    raise AssertionError(event)


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    service, host = Service(), Host("stage", ServerSettings())
    add = transform_pb2_grpc.add_TransformServiceServicer_to_server
    host.add(add, service, "boardlift.v1.TransformService")
    host.add(toolchain_pb2_grpc.add_ServerServiceServicer_to_server, service, "boardlift.v1.ServerService")
    channel = channels.connect(f"127.0.0.1:{await host.start()}")
    yield Lab(service, GrpcRunner(channel))
    service.go.set()
    await channel.close()
    await host.stop()


async def test_a_stop_that_comes_after_the_end_does_not_stop_the_next_run_of_the_name(lab: Lab) -> None:
    lab.service.go.set()
    await lab.runner.run(TASK, emit)
    await lab.runner.stop(TASK)  # the job was removed, and its id is taken again a quarter of an hour later
    assert (await lab.runner.run(TASK, emit)).heldout_samples == 7  # type: ignore[attr-defined]


async def test_an_attempt_that_was_delivered_twice_is_stopped_in_both_places(lab: Lab) -> None:
    first, second = await lab.begin(), await lab.begin()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    third = await lab.begin()
    await lab.runner.stop(TASK)
    for running in (second, third):
        with pytest.raises(CancelledError):
            await asyncio.wait_for(running, 5)
