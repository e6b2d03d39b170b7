"""Let waiting jobs in when it is their turn. Runs in every orchestrator; a job is let in by one compare-and-set.

Two orchestrators that look at the same moment may let in a job too many each; the next look counts it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable
from typing import Final

import structlog
from boardlift.errors import BoardliftError
from boardlift.v1 import job_pb2, toolchain_pb2
from boardlift_servicekit.clock import now

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.events import Admit
from boardlift_orchestrator.index import JobIndex, JobLine, job_line
from boardlift_orchestrator.record import JobRecord
from boardlift_orchestrator.registry import Registry
from boardlift_orchestrator.turns import Room, choose_next, has_room, jobs_before

_SPARE: Final = 2
"""Jobs more than there are slots: a service that ends a stage finds the next one queued."""
_LEAST: Final = 4
_SETTLE_S: Final = 0.05
_LOOK_S: Final = 2.0
_log = structlog.get_logger(__name__)


class Admission:
    """Decides which jobs begin."""

    def __init__(
        self, engine: Engine, index: JobIndex, registry: Registry, slots: Callable[[], int], most_active: int = 0
    ) -> None:
        """Let jobs of `index` in.

        Args:
            engine: Applies the decision; calls back when jobs have moved on.
            index: All jobs.
            registry: Boards.
            slots: Returns how many stages the stage services run at the same time, as far as is known.
            most_active: Jobs that may have stages at the stage services; 0 goes by the slots.
        """
        self._engine = engine
        self._index = index
        self._registry = registry
        self._slots = slots
        self._most_active = most_active
        self._begun: dict[str, JobLine] = {}
        self._written: set[str] = set()
        self._boards, self._counted = 0, -_LOOK_S
        self._poked = asyncio.Event()
        engine.moved = self._poked.set

    async def create(self, job: JobRecord) -> JobRecord:
        """Store a new job: it begins at once, or waits for its turn; see `Engine.create`."""
        job = await self._decide(job)
        stored = None
        try:
            stored = await self._engine.create(job)
        finally:
            if stored is None:
                self._begun.pop(job.id, None)  # it is not there, or the next look at the index finds it
            elif job.id in self._begun:
                self._written.add(job.id)
        self._poked.set()
        if stored.held and not stored.state.ended:
            await self._tell(stored)
        return stored

    async def _decide(self, job: JobRecord) -> JobRecord:
        lines, room = await self._look_around()
        if has_room(lines, dataclasses.replace(job_line(job), held=True), room):
            self._begun[job.id] = dataclasses.replace(job_line(job), front=True)
            return job
        return dataclasses.replace(job, held=True)

    async def _tell(self, job: JobRecord) -> None:
        before = jobs_before(await self._lines(), job_line(job))
        text = f"waiting for its turn; {before} more of {job.submitter}'s jobs go first"
        line = toolchain_pb2.LogLine(text=text, source="boardlift")
        await self._engine.note(job_pb2.WatchJobResponse(log=line, event_time=now()), job.id, "turn")

    async def run(self) -> None:
        """Let jobs in until cancelled."""
        while True:
            try:
                await asyncio.wait_for(self._poked.wait(), _LOOK_S)
                await asyncio.sleep(_SETTLE_S)
            except asyncio.TimeoutError:
                pass  # another orchestrator may have died between the end of a job and its look
            self._poked.clear()
            try:
                await self.look()
            except BoardliftError as error:
                _log.warning("admission_put_off", reason=error.reason, error=error.message)
            except Exception:  # noqa: BLE001 - the outermost boundary: without it nobody would ever be let in again
                _log.exception("admission_failed")

    async def look(self) -> None:
        """Let in whoever may come in now."""
        if not any(line.waiting for line in await self._lines()):
            return
        lines, room = await self._look_around()
        for job_id in choose_next(lines, room):
            await self._engine.advance(job_id, Admit())

    async def _lines(self) -> list[JobLine]:
        written = set(self._written)
        lines = await self._index.lines()
        for job_id in written:
            self._begun.pop(job_id, None)  # also one that isn't among the lines: it was removed since
        self._written -= written
        return lines

    def _with_begun(self, lines: list[JobLine]) -> list[JobLine]:
        """Add the jobs that were told to begin and whose records are not seen yet."""
        for line in lines:
            self._begun.pop(line.id, None)
        return [*lines, *self._begun.values()]

    async def _look_around(self) -> tuple[list[JobLine], Room]:
        """Return all jobs and the room for them; calls at the same time see each other's decisions."""
        lines = await self._lines()
        # Boards matter only to who has jobs at boards already.
        boards = any(line.active and line.board for line in lines)
        if boards and time.monotonic() - self._counted >= _LOOK_S:  # with hundreds of boards it is much to read
            self._boards = sum(board.usable for board in await self._registry.views())
            self._counted = time.monotonic()
            lines = await self._lines()  # jobs may have begun, and been written, while boards were counted
        front = self._most_active or max(_LEAST, self._slots() + _SPARE)
        return self._with_begun(lines), Room(front, 2 * (self._boards if boards else 0) + _SPARE)
