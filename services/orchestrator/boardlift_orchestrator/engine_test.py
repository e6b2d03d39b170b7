"""Events on real records: over a real NATS server, with an artifact store that can lose something."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from boardlift.errors import UnavailableError
from boardlift.v1 import compiler_pb2, job_pb2
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.lease import Lease
from boardlift_servicekit.messaging import connect
from boardlift_servicekit.streams import QueueLimits, ensure_streams
from support.nats_server import running_nats

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.events import Admit, Tick
from boardlift_orchestrator.index import JobIndex
from boardlift_orchestrator.plan_stages import plan_classes, plan_stages
from boardlift_orchestrator.record import JobRecord, JobState, Ref, StageState, encode_record
from boardlift_orchestrator.registry import Buckets, Registry
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.schedule import BoardView
from boardlift_orchestrator.sweep import Sweeper

LIMITS = QueueLimits()


class Lab:
    """An engine and what it works on."""

    def __init__(self, client: Any, folder: Path) -> None:
        self.client = client
        self.buckets = Buckets.open(client)
        self.results = Results(LocalStore(folder))
        self.registry = Registry(client, self.buckets, LIMITS)
        self.engine = Engine(client, self.buckets.jobs, self.results, self.registry)
        lease = Lease(client.jetstream(), f"sweep-{folder.name}", "test")
        self.sweeper = Sweeper(self.engine, JobIndex(self.buckets.jobs), self.registry, self.results, lease, 0.0)

    async def put(self, name: str, held: bool) -> JobRecord:
        """Store a job that has begun or waits for its turn, whose specification is gone."""
        spec = job_pb2.JobSpec(target="t", variants=[compiler_pb2.VariantSpec(name="a", preset="int8")])
        now = time.time()
        job = JobRecord(name, Ref("0" * 64, 1, "x"), now, now + 1000, plan_stages(spec), classes=plan_classes(spec))
        if not held:
            begun = dataclasses.replace(job.stages[0], state=StageState.RUNNING, attempt=1, start=now)
            job = dataclasses.replace(job, stages=(begun, *job.stages[1:]))
        job = dataclasses.replace(job, held=held)
        await self.buckets.jobs.put(name, encode_record(job), revision=0)
        return job


@pytest.fixture(scope="module")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_nats(tmp_path_factory.mktemp("nats")) as stack:
        yield stack.nats_url


@pytest.fixture
async def lab(nats_url: str, tmp_path: Path) -> AsyncIterator[Lab]:
    client = await connect(nats_url, "test")
    await ensure_streams(client.jetstream(), LIMITS)
    yield Lab(client, tmp_path)
    await client.close()


async def ended(lab: Lab, job_id: str) -> JobRecord:
    job = await lab.engine.read(job_id)
    assert job is not None and job.state is JobState.FAILED and job.error is not None, job
    assert job.error.code == "ARTIFACT_MISSING" and not job.error.user_fault
    return job


@pytest.mark.parametrize(("event", "held"), [(Admit(), True), (Tick(), False)])
async def test_a_job_that_can_never_go_on_ends_at_once_and_frees_its_place(lab: Lab, event: Any, held: bool) -> None:
    job = await lab.put(f"lost-{held}".lower(), held)
    await lab.engine.advance(job.id, event)
    await ended(lab, job.id)


async def test_a_sweep_ends_a_job_that_can_never_go_on(lab: Lab) -> None:
    job = await lab.put("swept", held=False)
    await lab.sweeper.sweep()
    await ended(lab, job.id)


async def test_what_may_pass_is_raised_and_the_job_lives(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await lab.put("waits", held=True)

    async def away(_job: JobRecord) -> Any:
        raise UnavailableError("away for a moment")

    monkeypatch.setattr(lab.results, "spec", away)
    with pytest.raises(UnavailableError):
        await lab.engine.advance(job.id, Admit())
    monkeypatch.undo()
    await lab.sweeper.sweep()
    await ended(lab, job.id)


async def test_a_worker_that_missed_the_end_of_a_job_is_told_again_to_stop(lab: Lab) -> None:
    heard = await lab.client.subscribe("ctl.job.*")
    for name, worker, age_s in (("just-now", "w1", 1.0), ("never-begun", "", 1.0), ("long-ago", "w1", 86400.0)):
        job = await lab.put(f"stop-{name}", held=True)
        stage = dataclasses.replace(job.stages[0], state=StageState.CANCELLED, attempt=1, worker=worker)
        stages, ended = (stage, *job.stages[1:]), time.time() - age_s
        job = dataclasses.replace(job, state=JobState.CANCELLED, held=False, ended=ended, stages=stages)
        await lab.buckets.jobs.put(job.id, encode_record(job))
    for _ in range(2):
        await lab.sweeper.sweep()
        await lab.client.publish("ctl.job.last-word")
        told = []
        while not told or told[-1] != "ctl.job.last-word":
            told.append((await heard.next_msg(timeout=5)).subject)
        assert [subject for subject in told if "stop-" in subject] == ["ctl.job.stop-just-now"]


async def test_hundreds_of_jobs_at_boards_cost_one_look_at_the_boards(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, boards = [], [BoardView("there", "t"), BoardView("elsewhere", "other")]

    async def views() -> list[BoardView]:
        looks.append(1)
        return list(boards)

    async def spec(_job: JobRecord) -> Any:
        return job_pb2.JobSpec(target="t")

    monkeypatch.setattr(lab.registry, "views", views)
    monkeypatch.setattr(lab.results, "spec", spec)
    lost: list[str] = []

    async def apply(job_id: str, event: Any) -> None:
        lost.append(job_id)

    monkeypatch.setattr(lab.engine, "apply", apply)
    job = await lab.put("placed", held=False)
    for count in range(30):
        place = "id.gone" if count == 7 else "id.late" if count == 20 else "id.there"
        if count == 19:
            boards.append(BoardView("late", "t"))
        stage = dataclasses.replace(job.stages[0], place=place, worker="w")
        await lab.sweeper._find_lost(dataclasses.replace(job, id=str(count), stages=(stage, *job.stages[1:])))
    assert lost == ["7"]
    assert len(looks) == 3  # the first one, and one more for each that seemed to be lost
