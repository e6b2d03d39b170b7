"""Plans over the real interfaces: what a cache would answer, what past runs took, and that nothing is started."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from boardlift.errors import from_rpc_error
from boardlift.v1 import job_pb2, job_pb2_grpc, toolchain_pb2
from boardlift_servicekit import channels
from support import jobs
from support.stack import Stack, running, wait_for_port

Plan = job_pb2.StagePlan


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(Stack(tmp_path_factory.mktemp("plan"))) as started:
        yield started


@pytest.fixture
async def channel(stack: Stack) -> AsyncIterator[Any]:
    opened = channels.connect(stack.address)
    boards = job_pb2_grpc.BoardServiceStub(opened)
    while not any(b.online for b in (await boards.ListBoards(job_pb2.ListBoardsRequest(), timeout=10)).boards):
        await asyncio.sleep(0.1)
    yield opened
    await opened.close()


async def plan(channel: Any, spec: Any) -> Any:
    stub = job_pb2_grpc.JobServiceStub(channel)
    return await stub.PlanJob(job_pb2.PlanJobRequest(spec=spec), timeout=30)


def answers(found: Any) -> dict[str, int]:
    return {f"{stage.stage} {stage.variant}".strip(): stage.answer for stage in found.stages}


async def test_before_and_after_a_run(channel: Any, stack: Stack, tmp_path: Any) -> None:
    spec = jobs.spec(await jobs.upload(channel, tmp_path, b"samples"), "planned", ("int8",))
    first = await plan(channel, spec)
    assert answers(first) == {
        "ingest": Plan.ANSWER_ALWAYS_RUNS,
        "transform": Plan.ANSWER_RUNS,
        "check": Plan.ANSWER_AFTER_RUN,
        "compile int8": Plan.ANSWER_AFTER_RUN,
        "simulate int8": Plan.ANSWER_AFTER_RUN,
        "board int8": Plan.ANSWER_ALWAYS_RUNS,
        "verdict": Plan.ANSWER_ALWAYS_RUNS,
    }
    assert not any(stage.HasField("duration") for stage in first.stages)
    assert (first.boards_online, first.boards_free, first.board_stages_queued) == (1, 1, 0)
    assert not stack.ledger.exists()  # nothing was run, and no job is there
    assert len((await job_pb2_grpc.JobServiceStub(channel).ListJobs(job_pb2.ListJobsRequest(), timeout=5)).jobs) == 0
    await jobs.wait_ended(channel, (await jobs.create(channel, spec)).id)
    second = answers(await plan(channel, spec))
    stored = ("transform", "check", "compile int8", "simulate int8")
    assert {second[name] for name in stored} == {Plan.ANSWER_CACHED}
    other = jobs.spec(spec.dataset, "planned too", ("int8",))
    found = await plan(channel, other)
    times = {stage.stage: stage for stage in found.stages if stage.HasField("duration")}
    assert set(times) == {"ingest", "transform", "check", "compile", "simulate", "board", "verdict"}
    assert times["compile"].basis == "similar size" and times["compile"].past_runs == 1
    assert 0 < times["compile"].duration.value < 5
    assert times["compile"].duration.kind == toolchain_pb2.FIGURE_KIND_ESTIMATED


async def test_what_a_job_would_be_refused_for_a_plan_is_refused_for(channel: Any, tmp_path: Any) -> None:
    spec = jobs.spec(await jobs.upload(channel, tmp_path, b"samples"), "wrong", ("int8",))
    spec.gates.add(metric="beauty", minimum=1)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await plan(channel, spec)
    assert from_rpc_error(caught.value).reason == "SPEC_INVALID"
    del spec.gates[-1]
    spec.split.seed = 666
    found = await plan(channel, spec)
    assert found.stages[0].failure.code == "DATASET_EMPTY"
    assert {stage.answer for stage in found.stages[1:-1]} == {Plan.ANSWER_SKIPPED}


async def test_a_service_that_is_down_is_not_known_about(channel: Any, stack: Stack, tmp_path: Any) -> None:
    spec = jobs.spec(await jobs.upload(channel, tmp_path, b"samples"), "dark", ("int8",))
    spec.skip_board = True
    stack.services[0].kill()
    try:
        found = answers(await plan(channel, spec))
    finally:
        stack.services[0].start()
        wait_for_port(stack.worker_ports[0])
    assert found.pop("verdict") == Plan.ANSWER_ALWAYS_RUNS
    assert found.pop("board int8") == Plan.ANSWER_SKIPPED
    assert set(found.values()) == {Plan.ANSWER_UNKNOWN}
