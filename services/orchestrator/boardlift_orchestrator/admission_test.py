from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from boardlift_orchestrator.admission import Admission
from boardlift_orchestrator.events import Admit
from boardlift_orchestrator.index import JobLine, job_line
from boardlift_orchestrator.record import JobRecord, JobState, Ref, Stage, StageState


async def test_a_fault_of_one_look_does_not_end_all_looks() -> None:
    looks, admitted = [], []

    async def lines() -> list[JobLine]:
        looks.append(1)
        if len(looks) == 1:
            raise OSError("a fault that nobody has thought of")
        return [JobLine("j", 1.0, JobState.QUEUED, held=True)]

    async def advance(job_id: str, event: Any) -> None:
        admitted.append((job_id, type(event)))

    engine: Any = SimpleNamespace(moved=None, advance=advance)
    index: Any = SimpleNamespace(lines=lines)
    registry: Any = SimpleNamespace()
    running = asyncio.create_task(Admission(engine, index, registry, lambda: 1).run())
    for _ in range(2):
        engine.moved()
        await asyncio.sleep(0.2)
    assert not running.done() and ("j", Admit) in admitted
    running.cancel()


async def test_a_job_that_is_removed_before_anybody_looked_gives_its_turn_back() -> None:
    waiting, admitted = [], []

    async def lines() -> list[JobLine]:
        return list(waiting)

    async def create(job: JobRecord) -> JobRecord:
        return job

    async def advance(job_id: str, event: Any) -> None:
        admitted.append(job_id)

    engine: Any = SimpleNamespace(moved=None, create=create, advance=advance)
    index: Any = SimpleNamespace(lines=lines)
    admission = Admission(engine, index, SimpleNamespace(), lambda: 1, most_active=1)  # type: ignore[arg-type]
    stages = (Stage("transform", "int8", state=StageState.RUNNING),)
    short = JobRecord("short", Ref("0" * 64, 1), 1.0, 2.0, stages, owner="o", submitter="o")
    assert not (await admission.create(short)).held
    # It was cancelled and removed at once: the index never shows it.
    waiting.append(JobLine("next", 2.0, JobState.QUEUED, submitter="o", held=True))
    await admission.look()
    assert admitted == ["next"]


async def test_a_decision_that_took_long_sees_who_has_begun_meanwhile() -> None:
    stored = {"old": JobLine("old", 1.0, JobState.RUNNING, submitter="z", board=True)}
    counting, counted = asyncio.Event(), asyncio.Event()

    async def lines() -> list[JobLine]:
        return list(stored.values())

    async def create(job: JobRecord) -> JobRecord:
        stored[job.id] = job_line(job)
        return job

    async def note(*_: Any) -> None:
        """Nobody watches."""

    async def views() -> list[Any]:
        if not counting.is_set():
            counting.set()
            await counted.wait()
        return []

    engine: Any = SimpleNamespace(moved=None, create=create, note=note)
    index: Any = SimpleNamespace(lines=lines)
    registry: Any = SimpleNamespace(views=views)
    admission = Admission(engine, index, registry, lambda: 1, most_active=1)
    stages = (Stage("transform", "int8", state=StageState.RUNNING),)
    slow, quick = [JobRecord(name, Ref("0" * 64, 1), 1.0, 2.0, stages, submitter="o") for name in ("slow", "quick")]
    waits = asyncio.create_task(admission.create(slow))
    await counting.wait()
    assert not (await admission.create(quick)).held
    await admission.look()  # from now on the index says so
    counted.set()
    assert (await waits).held
