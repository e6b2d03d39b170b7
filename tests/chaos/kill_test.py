"""Dozens of jobs while orchestrators, workers and the NATS server are killed (-9): nothing lost, nothing done twice."""

from __future__ import annotations

import asyncio
import collections
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from boardlift.v1 import job_pb2, job_pb2_grpc
from boardlift_servicekit import channels
from support import jobs
from support.persist import submit, wait_for_end
from support.stack import Process, Stack, running

JOBS = 40
KILLS = 14
SUCCEEDED = job_pb2.StageRecord.STATE_SUCCEEDED


async def kill_at_random(stack: Stack, rng: random.Random) -> list[str]:
    """Kill one process after another and start each again, the NATS server included."""
    victims: list[tuple[str, Process]] = [("nats", stack.nats)]
    victims += [(f"orchestrator{i}", item) for i, item in enumerate(stack.servers)]
    victims += [(f"worker{i}", item) for i, item in enumerate(stack.services)]
    killed = []
    for turn in range(KILLS):
        await asyncio.sleep(rng.uniform(0.4, 1.0))
        name, victim = victims[turn % len(victims)]
        victim.kill()
        killed.append(name)
        await asyncio.sleep(rng.uniform(0.1, 0.4))
        victim.start()
    return killed


def check_history(events: list[Any]) -> None:
    """A stage that has succeeded once keeps its result and attempt for ever."""
    done: dict[tuple[str, str], tuple[int, str]] = {}
    for event in events[1:]:  # the first is a snapshot of now
        for stage in event.job.stages if event.HasField("job") else ():
            key, value = (stage.stage, stage.variant), (stage.attempt, stage.result.sha256)
            if stage.state == SUCCEEDED:
                assert done.setdefault(key, value) == value, f"{key} was finished twice"
            else:
                assert key not in done, f"{key} went back"


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_nothing_is_lost_or_done_twice_under_kills(tmp_path: Path) -> None:
    fakes = {"FAKE_SECONDS": "0.2", "FAKE_FAULTS": "0.02"}
    with running(Stack(tmp_path, orchestrators=2, workers=2, fakes=fakes)) as stack:
        opened = [channels.connect(f"127.0.0.1:{port}") for port in stack.orchestrator_ports]
        dataset = await jobs.upload(opened[0], tmp_path / "client", b"samples")
        start = time.monotonic()
        killer = asyncio.create_task(kill_at_random(stack, random.Random(int(os.environ.get("CHAOS_SEED", "7")))))
        names = await asyncio.gather(*(submit(opened, dataset, index) for index in range(JOBS)))
        killed = await killer
        ended = await asyncio.gather(*(wait_for_end(opened[i % 2], name) for i, name in enumerate(names)))
        seconds = time.monotonic() - start
        stub = job_pb2_grpc.JobServiceStub(opened[0])
        for name in names:
            check_history([e async for e in stub.WatchJob(job_pb2.WatchJobRequest(job_id=name), timeout=20)])
        for channel in opened:
            await channel.close()
        ledger = [line.split() for line in stack.ledger.read_text().splitlines()]
    assert len(set(names)) == JOBS
    states = collections.Counter(job.state for job in ended)
    assert states == {job_pb2.Job.STATE_SUCCEEDED: JOBS}, [job.error for job in ended if job.HasField("error")]
    assert all(stage.state == SUCCEEDED for job in ended for stage in job.stages)
    assert [line for line in ledger if line[0] == "again"] == []
    runs = collections.Counter(line[1] for line in ledger if line[0] == "done")
    repeated = sum(count - 1 for count in runs.values())
    print(f"{JOBS} jobs, {len(runs)} stage runs, {repeated} repeated, {len(killed)} kills, {seconds:.1f} s")
    # A worker killed between the end of its work and the write of the result does that piece again: its slots at most.
    assert repeated <= killed.count("worker0") * 4 + killed.count("worker1") * 4
