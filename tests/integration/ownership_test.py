"""With tokens: nobody gets in without one, readers may look, owners and admins may cancel."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from boardlift.errors import BoardliftError, PermissionDeniedError, UnauthenticatedError, from_rpc_error
from boardlift.v1 import job_pb2, job_pb2_grpc, queue_pb2
from boardlift_servicekit import channels
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.messaging import connect, publish_outcome
from support import jobs
from support.stack import Stack, running, wait_for_port

SCOPES = {"ann": "write", "bob": "write", "eve": "read", "root": "admin", "x5-1": "board"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("tokens")
    lines = []
    for name, scope in SCOPES.items():
        (folder / name).write_text(f"{name}-secret\n")
        lines.append(f"{name} {hashlib.sha256(f'{name}-secret'.encode()).hexdigest()} {scope}")
    (folder / "tokens").write_text("\n".join(lines))
    made = Stack(folder, settings={"BOARDLIFT_TOKENS_FILE": str(folder / "tokens")})
    made.services.clear()  # nobody runs stages: the job waits
    made.worker_ports.clear()
    with running(made) as started:
        yield started


@pytest.fixture
async def callers(stack: Stack) -> AsyncIterator[dict[str, Any]]:
    opened = {name: channels.connect(stack.address, ChannelSettings(token_file=stack.folder / name)) for name in SCOPES}
    opened["nobody"] = channels.connect(stack.address)
    yield opened
    for channel in opened.values():
        await channel.close()


async def attempt(call: Any) -> BoardliftError | None:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error)
    return None


async def test_who_may_do_what(callers: dict[str, Any], tmp_path: Path, stack: Stack) -> None:
    wait_for_port(stack.orchestrator_ports[0])
    spec = jobs.spec(await jobs.upload(callers["ann"], tmp_path, b"x"), "owned")
    assert isinstance(await attempt(jobs.create(callers["nobody"], spec)), UnauthenticatedError)
    assert isinstance(await attempt(jobs.create(callers["eve"], spec)), PermissionDeniedError)
    first, second = await jobs.create(callers["ann"], spec), await jobs.create(callers["ann"], spec)
    assert first.owner == "ann"
    stubs = {name: job_pb2_grpc.JobServiceStub(channel) for name, channel in callers.items()}
    seen = await stubs["eve"].GetJob(job_pb2.GetJobRequest(job_id=first.id), timeout=5)
    assert seen.job.id == first.id
    cancel = job_pb2.CancelJobRequest(job_id=first.id)
    refused = await attempt(stubs["bob"].CancelJob(cancel, timeout=5))
    assert isinstance(refused, PermissionDeniedError) and refused.reason == "NOT_OWNER"
    assert isinstance(await attempt(stubs["eve"].CancelJob(cancel, timeout=5)), PermissionDeniedError)
    assert await attempt(stubs["ann"].CancelJob(cancel, timeout=5)) is None
    assert await attempt(stubs["root"].CancelJob(job_pb2.CancelJobRequest(job_id=second.id), timeout=5)) is None


async def test_one_caller_s_request_id_is_not_another_s(callers: dict[str, Any], tmp_path: Path) -> None:
    spec = jobs.spec(await jobs.upload(callers["ann"], tmp_path, b"x"), "twice")
    name = "7b0c1a52-9a50-4c05-9d0e-3f1f5b1f2a10"
    ann, bob = await jobs.create(callers["ann"], spec, name), await jobs.create(callers["bob"], spec, name)
    assert ann.id != bob.id


async def test_a_board_s_token_speaks_for_that_board_and_sees_no_job(callers: dict[str, Any], tmp_path: Path) -> None:
    spec = jobs.spec(await jobs.upload(callers["x5-1"], tmp_path, b"outputs"), "board")
    boards, seen = job_pb2_grpc.BoardServiceStub(callers["x5-1"]), job_pb2_grpc.JobServiceStub(callers["x5-1"])
    own = job_pb2.RegisterBoardRequest(board={"id": "x5-1", "target": "rdk-x5", "boot_id": "1"})
    assert await attempt(boards.RegisterBoard(own, timeout=10)) is None
    other = job_pb2.RegisterBoardRequest(board={"id": "x5-2", "target": "rdk-x5", "boot_id": "1"})
    refused = await attempt(boards.RegisterBoard(other, timeout=10))
    assert isinstance(refused, PermissionDeniedError) and refused.reason == "NOT_THIS_BOARD"
    for call in (
        jobs.create(callers["x5-1"], spec),
        seen.ListJobs(job_pb2.ListJobsRequest(), timeout=5),
        boards.GrantBoardLease(job_pb2.GrantBoardLeaseRequest(board_id="x5-1"), timeout=5),
    ):
        assert isinstance(await attempt(call), PermissionDeniedError)


async def test_a_board_reports_on_its_own_stages_only(callers: dict[str, Any], tmp_path: Path, stack: Stack) -> None:
    boards, seen = job_pb2_grpc.BoardServiceStub(callers["x5-1"]), job_pb2_grpc.JobServiceStub(callers["ann"])
    board = job_pb2.RegisterBoardRequest(board={"id": "x5-1", "target": "rdk-x5", "boot_id": "1"})
    await boards.RegisterBoard(board, timeout=10)
    job = await jobs.create(callers["ann"], jobs.spec(await jobs.upload(callers["ann"], tmp_path, b"x"), "forged"))
    client = await connect(stack.nats_url, "board")
    try:
        forged = queue_pb2.StageOutcome(job_id=job.id, stage="ingest", attempt=1, worker="x5-1")
        forged.failure.code, forged.failure.user_fault = "FORGED", True
        await publish_outcome(client.jetstream(), forged)
        forged.worker = "orch-1"
        await client.jetstream().publish(f"res.x5-1.{job.id}", forged.SerializeToString())
        forged.worker, forged.job_id = "x5-1", "*"  # any job
        await client.jetstream().publish("res.x5-1.*", forged.SerializeToString())
        await asyncio.sleep(1.0)
        stages = (await seen.GetJob(job_pb2.GetJobRequest(job_id=job.id), timeout=5)).job.stages
        assert {s.stage: s.state for s in stages}["ingest"] == job_pb2.StageRecord.STATE_RUNNING
        log = (stack.folder / "orchestrator0.log").read_text()
        assert log.count("outcome_of_somebody_else") == 3
    finally:
        await client.close()


async def test_a_board_that_writes_nonsense_about_itself_hides_no_other(callers: dict[str, Any], stack: Stack) -> None:
    boards = job_pb2_grpc.BoardServiceStub(callers["root"])
    for name in ("x5-1", "x5-2"):
        request = job_pb2.RegisterBoardRequest(board={"id": name, "target": "rdk-x5", "boot_id": "1"})
        await boards.RegisterBoard(request, timeout=10)
    client = await connect(stack.nats_url, "board")
    try:
        await client.jetstream().publish("$KV.PRESENCE.x5-1", b"\xff\xff")
    finally:
        await client.close()
    found = (await boards.ListBoards(job_pb2.ListBoardsRequest(), timeout=5)).boards
    assert {board.info.id: board.online for board in found} == {"x5-1": False, "x5-2": True}
