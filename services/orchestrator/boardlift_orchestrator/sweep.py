"""Look after jobs that nothing happens to: one sweeper at a time, under a lease.

Normally it finds nothing. It covers a timer that got lost, a board that died with a task queued for it alone, a worker
that was away from the queue when it was told to stop, and whatever nobody has thought of: it repeats what the record
says, which is harmless.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog
from boardlift.errors import BoardliftError
from boardlift_servicekit.lease import Lease

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.events import Lost, Tick
from boardlift_orchestrator.index import JobIndex
from boardlift_orchestrator.record import JobRecord, StageState
from boardlift_orchestrator.registry import Registry
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.schedule import BoardView, is_lost

_log = structlog.get_logger(__name__)
_STEP_S: Final = 2.0
_RETURN_S: Final = 12.0
"""After an outage of the queue, signs of life are missing until boards have renewed them: they do so every 5 s."""
_STOP_S: Final = 600.0
"""Time after a job's end for which its workers are told again to stop."""


class Sweeper:
    """Runs in every orchestrator; works in the one that holds the lease."""

    def __init__(
        self, engine: Engine, index: JobIndex, registry: Registry, results: Results, lease: Lease, every_s: float
    ) -> None:
        """Sweep every `every_s` seconds while `lease` is held."""
        self._engine = engine
        self._index = index
        self._registry = registry
        self._results = results
        self._lease = lease
        self._every_s = every_s
        self._stopping = False
        self._held_since = float("-inf")
        self._boards: list[BoardView] = []
        self._counted = float("-inf")

    async def start(self) -> None:
        """Begin to sweep."""
        self._held_since = float("inf")
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Sweep no more and give up the lease."""
        self._stopping = True
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._lease.release()

    async def _run(self) -> None:
        due = time.monotonic() + self._every_s
        while not self._stopping:
            await asyncio.sleep(min(_STEP_S, self._every_s))
            try:
                now = time.monotonic()
                self._held_since = min(self._held_since, now) if await self._lease.step() else float("inf")
                if self._held_since <= now and now >= due:
                    due = time.monotonic() + self._every_s
                    await self.sweep()
            except Exception:  # noqa: BLE001
                _log.exception("sweep_failed")  # the outermost boundary of this task: the next round tries again

    async def sweep(self) -> None:
        """Look at every job that has not ended, or not long ago."""
        now = time.time()
        for line in await self._index.lines():
            if line.stopped and line.state.ended and now - line.ended < _STOP_S:
                await self._engine.stop_again(line.id)
            job = None if line.state.ended else await self._engine.read(line.id)
            if job is None:
                continue
            try:
                if time.monotonic() - self._held_since >= _RETURN_S:
                    await self._find_lost(job)
                if now >= job.deadline or not 0 <= now - job.changed < self._every_s:  # or the clock was set back
                    await self._engine.apply(job.id, Tick())
            except BoardliftError as error:
                await self._settle(job, error)

    async def _settle(self, job: JobRecord, error: BoardliftError) -> None:
        """End a job that can't go on: it would hold its place until its deadline. Else the next round tries again."""
        try:
            await self._engine.break_off(job.id, error)
        except BoardliftError as again:
            _log.warning("sweep_left_job", job=job.id, reason=again.reason, error=again.message)

    async def _find_lost(self, job: JobRecord) -> None:
        placed = [stage for stage in job.stages if stage.state is StageState.RUNNING and stage.place.startswith("id.")]
        if not placed:
            return
        spec = await self._results.spec(job)
        if time.monotonic() - self._counted >= _STEP_S:  # with hundreds of jobs and boards it is much to read
            self._boards, self._counted = await self._registry.views(), time.monotonic()
        for stage in placed:
            begun = bool(stage.worker)
            if not is_lost(stage.place, spec.board, self._boards, begun):
                continue
            boards = await self._registry.views()  # the board may have come since
            if is_lost(stage.place, spec.board, boards, begun):
                _log.warning("board_lost", job=job.id, variant=stage.variant, place=stage.place)
                await self._engine.apply(job.id, Lost(stage.stage, stage.variant, stage.attempt))
