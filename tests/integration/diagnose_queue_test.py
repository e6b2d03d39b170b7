"""Diagnoses through the queue: boards that nobody can dial, sick ones, and callers that leave."""

from __future__ import annotations

import asyncio
import io
import uuid
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from boardlift.errors import from_rpc_error
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc
from integration.board_queue_test import Lab, boards, lab, model, online, stack, until  # noqa: F401
from support import jobs

pytestmark = pytest.mark.toolchain
NPZ = "application/x-npz"


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


class Asker:
    """Asks for diagnoses of one job."""

    def __init__(self, lab: Lab, request: job_pb2.DiagnoseJobRequest) -> None:  # noqa: F811
        self.lab, self.request = lab, request
        self.stub = job_pb2_grpc.JobServiceStub(lab.channel)

    def call(self, board: str = "") -> Any:
        request = job_pb2.DiagnoseJobRequest()
        request.CopyFrom(self.request)
        request.diagnosis.run_id = uuid.uuid4().hex
        request.board.id = board
        return self.stub.DiagnoseJob(request, timeout=90)

    async def ask(self, board: str = "") -> list[Any]:
        return [event async for event in self.call(board)]

    async def queue_is_empty(self) -> bool:
        state = (await self.lab.client.jetstream().stream_info("TASK", subjects_filter="task.board.>")).state
        return not state.subjects


@pytest.fixture
async def asker(lab: Lab, model: Path, tmp_path: Path) -> Asker:  # noqa: F811
    dataset = await jobs.upload(lab.channel, tmp_path, b"samples")
    job = await jobs.create(lab.channel, jobs.spec(dataset, f"diag-{uuid.uuid4().hex[:6]}"))
    samples = np.random.default_rng(3).standard_normal((2, 1, 1, 1, 225)).astype(np.float32)
    put = lab.store.put_bytes
    diagnosis = board_agent_pb2.DiagnoseModelRequest(
        job_id=job.id,
        compiled_model=await lab.store.put_file(model, "application/octet-stream"),
        samples=await put(npz(obs_4d=samples), NPZ),
        user_inputs=await put(npz(obs_4d=samples * np.float32(255)), NPZ),
        sample_limit=1,
    )
    return Asker(lab, job_pb2.DiagnoseJobRequest(diagnosis=diagnosis))


async def test_without_a_board_or_a_job_it_says_so_at_once(asker: Asker, lab: Lab) -> None:  # noqa: F811
    async def reason(board: str) -> str:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asyncio.wait_for(asker.ask(board), 10)
        error = from_rpc_error(caught.value)
        assert error.remedy or board != "never-seen"
        return str(error.reason)

    assert await reason("") == "NO_BOARD_FOR_DIAGNOSIS"
    assert await reason("never-seen") == "BOARD_NOT_FOUND"
    asker.request.diagnosis.job_id = "no-such-job"
    assert await reason("") == "JOB_NOT_FOUND"


async def test_a_board_pulls_a_diagnosis_and_names_the_mistake(asker: Asker, lab: Lab, boards: Any) -> None:  # noqa: F811
    boards("q-diag")
    await online(lab, "q-diag")
    for name in ("", "q-diag"):
        events = await asker.ask(name)
        assert [e.sequence for e in events] == list(range(1, len(events) + 1))
        assert "queued for" in events[0].log.text
        assert events[-1].result.board.id == "q-diag"
        assert [d.cause for d in events[-1].result.diagnoses] == ["input-not-divided-by-255"]
    await until(asker.queue_is_empty, 10)


async def test_a_fault_of_the_board_is_tried_again_then_said(asker: Asker, lab: Lab, boards: Any) -> None:  # noqa: F811
    boards("q-full", simulator_sick="diskfull")
    await online(lab, "q-full")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asker.ask()
    error = from_rpc_error(caught.value)
    assert (error.reason, error.metadata["board"]) == ("BOARD_DISK_FULL", "q-full")
    await until(asker.queue_is_empty, 10)


async def test_a_caller_that_leaves_frees_the_board(asker: Asker, lab: Lab, boards: Any) -> None:  # noqa: F811
    boards("q-hangs", simulator_sick="hanging")
    await online(lab, "q-hangs")
    call = asker.call("q-hangs")
    await call.read()

    async def busy(wanted: bool) -> bool:
        return bool((await lab.boards())["q-hangs"].state.busy_job) == wanted

    await until(lambda: busy(True))
    call.cancel()
    await until(lambda: busy(False), 20)
    await until(asker.queue_is_empty, 10)
