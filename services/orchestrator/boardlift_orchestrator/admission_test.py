from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from boardlift_orchestrator.admission import Admission
from boardlift_orchestrator.events import Admit
from boardlift_orchestrator.index import JobLine
from boardlift_orchestrator.record import JobState


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
