"""Planned restarts: the orchestrator leaves quickly and cleanly, and the job goes on; a service comes back changed."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest
from boardlift.v1 import job_pb2, job_pb2_grpc
from boardlift_servicekit import channels
from support import jobs
from support.persist import wait_for_end
from support.stack import Stack, running, wait_for_port


@pytest.mark.timeout(280)
async def test_a_job_goes_on_after_a_planned_restart(tmp_path: Path) -> None:
    with running(Stack(tmp_path, fakes={"FAKE_SECONDS": "2.0"})) as stack:
        channel = channels.connect(stack.address)
        created = await jobs.create(
            channel, jobs.spec(await jobs.upload(channel, tmp_path / "c", b"x"), "restarted", ("int8",))
        )
        stub = job_pb2_grpc.JobServiceStub(channel)
        while True:
            job = (await stub.GetJob(job_pb2.GetJobRequest(job_id=created.id), timeout=5)).job
            if any(stage.stage == "transform" and stage.worker for stage in job.stages):
                break
            await asyncio.sleep(0.05)
        process = stack.servers[0]
        assert process.running is not None
        start = time.monotonic()
        process.running.send_signal(signal.SIGTERM)
        assert process.running.wait(timeout=20) == 0
        seconds = time.monotonic() - start
        process.start()
        wait_for_port(stack.orchestrator_ports[0])
        ended = await wait_for_end(channel, created.id)
        await channel.close()
        ledger = [line.split()[2] for line in stack.ledger.read_text().splitlines() if line.startswith("done")]
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED
    assert {stage.attempt for stage in ended.stages} == {1}
    assert ledger.count("transform") == 1  # attached again, not run again
    assert seconds < 15
    assert "Traceback" not in process.log.read_text()


@pytest.mark.timeout(280)
async def test_a_service_that_comes_back_with_other_slots_gets_as_much_work(tmp_path: Path) -> None:
    with running(Stack(tmp_path, fakes={"FAKE_SLOTS": "1"})) as stack:
        service, log = stack.services[0], stack.servers[0].log
        await until_logged(log, '"slots": 1')
        service.kill()
        service.environment["FAKE_SLOTS"] = "3"
        service.start()
        await until_logged(log, '"slots": 3')


async def until_logged(log: Path, text: str) -> None:
    """Wait until both of the fakes' queues, transform and compiler, have logged a text."""
    end = time.monotonic() + 120
    while log.read_text().count(text) < 2:
        assert time.monotonic() < end, log.read_text()
        await asyncio.sleep(0.1)
