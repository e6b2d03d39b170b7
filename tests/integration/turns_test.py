"""Submitters take turns: a single job does not wait behind everything that somebody else has submitted before."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from boardlift.v1 import job_pb2, job_pb2_grpc
from boardlift_servicekit import channels
from support import jobs
from support.persist import wait_for_end
from support.stack import Stack, running

CROWD = int(os.environ.get("TURNS_CROWD", "60"))
SUCCEEDED = job_pb2.Job.STATE_SUCCEEDED


async def submit(channel: Any, spec: Any, who: str) -> Any:
    stub = job_pb2_grpc.JobServiceStub(channel)
    request = job_pb2.CreateJobRequest(spec=spec, request_id=str(uuid.uuid4()))
    return (await stub.CreateJob(request, timeout=60, metadata=(("x-client-name", who),))).job


async def crowd_then_one(folder: Path, settings: dict[str, str]) -> tuple[float, float, list[Any]]:
    """Return (seconds of the single job, seconds of everything, the jobs of the crowd)."""
    with running(Stack(folder, workers=2, settings=settings, fakes={"FAKE_SECONDS": "0.1"})) as stack:
        channel = channels.connect(stack.address)
        dataset = await jobs.upload(channel, folder / "client", b"samples")
        begun = time.monotonic()
        names = [jobs.spec(dataset, f"crowd {i}", ("int8",)) for i in range(CROWD)]
        crowd = await asyncio.gather(*(submit(channel, spec, "ann") for spec in names))
        single_begun = time.monotonic()
        single = await submit(channel, jobs.spec(dataset, "single", ("int8",)), "bob")
        ended = await jobs.wait_ended(channel, single.id, timeout_s=600)
        single_s = time.monotonic() - single_begun
        assert ended.state == SUCCEEDED and ended.submitter == "bob"
        all_ended = [await jobs.wait_ended(channel, job.id, timeout_s=600) for job in crowd]
        all_s = time.monotonic() - begun
        await channel.close()
    assert {job.state for job in all_ended} == {SUCCEEDED}
    return single_s, all_s, all_ended


@pytest.mark.slow
@pytest.mark.timeout(700)
async def test_a_single_job_overtakes_a_crowd_of_somebody_else_s(tmp_path: Path) -> None:
    single_s, all_s, crowd = await crowd_then_one(tmp_path, dict(item.split("=") for item in SETTINGS if item))
    print(f"single job behind {CROWD} of somebody else: {single_s:.1f} s; everything: {all_s:.1f} s")
    assert single_s < all_s / 3
    assert all(not job.waiting_turn for job in crowd)


SETTINGS = os.environ.get("TURNS_SETTINGS", "").split(",")


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_waiting_jobs_survive_their_orchestrator_and_can_be_stopped(tmp_path: Path) -> None:
    settings = {"BOARDLIFT_ACTIVE_JOBS": "1"}
    with running(Stack(tmp_path, orchestrators=2, settings=settings, fakes={"FAKE_SECONDS": "0.6"})) as stack:
        first, second = (channels.connect(f"127.0.0.1:{port}") for port in stack.orchestrator_ports)
        dataset = await jobs.upload(first, tmp_path / "client", b"samples")
        made = [await submit(first, jobs.spec(dataset, f"w{i}", ("int8",)), "ann") for i in range(4)]
        urgent = jobs.spec(dataset, "urgent", ("int8",))
        urgent.priority = 10
        made.append(await submit(second, urgent, "ann"))
        assert [job.waiting_turn for job in made] == [False, True, True, True, True]
        stub = job_pb2_grpc.JobServiceStub(second)
        stopped = (await stub.CancelJob(job_pb2.CancelJobRequest(job_id=made[3].id), timeout=10)).job
        assert stopped.state == job_pb2.Job.STATE_CANCELLED and not stopped.waiting_turn
        watched = [e async for e in stub.WatchJob(job_pb2.WatchJobRequest(job_id=made[3].id), timeout=20)]
        assert any("waiting for its turn" in event.log.text for event in watched)
        stack.servers[1].kill()  # and never comes back
        ended = [await wait_for_end(first, job.id) for job in made]
        await first.close()
        await second.close()
    assert [job.state for job in ended] == [SUCCEEDED] * 3 + [job_pb2.Job.STATE_CANCELLED, SUCCEEDED]
    began = {name: job.start_time.ToNanoseconds() for name, job in zip("abcde", ended, strict=True)}
    assert began["a"] < began["e"] < min(began["b"], began["c"])
