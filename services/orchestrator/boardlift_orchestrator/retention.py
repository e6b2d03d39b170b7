"""Remove old jobs, boards that are long silent, and every artifact that nothing needs: mark by digest, then sweep.

One orchestrator does so at a time.

An artifact stays when a job that is still there names it, or when somebody has used it lately: uploaded it, asked
whether it is there, been told of it by a service's cache. The moment of the latest use that still lets an artifact go
lies before the jobs are read. So a job that comes in meanwhile keeps what it names, and two sweeps at once, or one that
slept, do no harm (see `boardlift_servicekit.sweep_store`).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog
from boardlift.errors import BoardliftError, PreconditionError
from boardlift.v1 import toolchain_pb2
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.clock import ClockWatch
from boardlift_servicekit.keeper import store_info, write_summary
from boardlift_servicekit.lease import Lease
from boardlift_servicekit.sweep_store import Swept, list_objects, sweep_partials, sweep_store

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.index import JobIndex
from boardlift_orchestrator.record import StageState
from boardlift_orchestrator.references import References
from boardlift_orchestrator.registry import Registry
from boardlift_orchestrator.settings import RetentionSettings

_STAMP: Final = "queue.txt"
_RENEW_S: Final = 2.0
_JUMP_S: Final = 3600.0
"""A clock that was set by more is not believed until the next start."""
_log = structlog.get_logger(__name__)


class Retention:
    """Runs in every orchestrator; works in the one that holds the lease."""

    def __init__(
        self,
        engine: Engine,
        index: JobIndex,
        registry: Registry,
        store: LocalStore,
        lease: Lease,
        settings: RetentionSettings,
        queue_id: Callable[[], Coroutine[Any, Any, str]],
    ) -> None:
        """Sweep `store` by the jobs of `index`.

        Args:
            engine: Reads and removes jobs.
            index: All jobs.
            registry: All boards.
            store: The artifacts of all orchestrators.
            lease: Keeps the others from doing the same work.
            settings: How long things stay.
            queue_id: Returns what tells this queue from any other.
        """
        self._engine, self._index, self._store, self._lease = engine, index, store, lease
        self._registry = registry
        self._settings = settings
        self._queue_id = queue_id
        self._references = References(store)
        self._foreign = False
        self._clock = ClockWatch()

    async def run(self) -> None:
        """Sweep until cancelled."""
        due = time.monotonic() + self._settings.first_s()
        try:
            while True:
                await asyncio.sleep(min(_RENEW_S, self._settings.first_s()))
                try:
                    if await self._lease.step() and time.monotonic() >= due:
                        due = time.monotonic() + self._settings.tidy_every.total_seconds()
                        await self.sweep()
                except Exception:  # noqa: BLE001
                    _log.exception("retention_failed")  # the outermost boundary: the next round tries again
        finally:
            await self._lease.release()

    def findings(self) -> list[toolchain_pb2.Finding]:
        """What an operator should know."""
        found = []
        info = store_info(self._store)
        if info is not None and 0 < info.limit_bytes < info.size_bytes:
            text = f"The artifact store has {info.size_bytes} bytes; its limit is {info.limit_bytes}."
            remedy = "Remove jobs (boardlift jobs rm), or raise BOARDLIFT_MAX_STORE_BYTES."
            found.append(_finding("STORE_OVER_LIMIT", text, remedy))
        if self._foreign:
            text = "The artifacts belong to the jobs of another queue; nothing is removed."
            remedy = f"Restore that queue's data, or give its jobs up: remove {_STAMP} from the artifact folder."
            found.append(_finding("STORE_OF_ANOTHER_QUEUE", text, remedy))
        jumped_s = self._clock.jumped_s()
        if abs(jumped_s) > _JUMP_S:
            text = f"The clock was set by {jumped_s / 3600:+.1f} hours; nothing is removed by age."
            remedy = "Start the orchestrator anew when the clock is right."
            found.append(_finding("CLOCK_WAS_SET", text, remedy))
        unreadable = sorted(self._index.unreadable)
        if unreadable:
            text = f"{len(unreadable)} jobs can't be read, {unreadable[0]} among them; no artifact is removed."
            found.append(_finding("JOBS_UNREADABLE", text, "Run the release of the orchestrator that wrote them."))
        return found

    async def sweep(self) -> Swept:
        """Remove what is old, once.

        Raises:
            PreconditionError: STORE_OF_ANOTHER_QUEUE or CLOCK_WAS_SET, nothing was removed; JOBS_UNREADABLE, no
                artifact was.
            UnavailableError: NATS does not answer; what was not looked at stays.
            OSError: The store can't be read; artifacts stay.
        """
        if abs(self._clock.jumped_s()) > _JUMP_S:  # the ages of jobs and files would be those of two clocks
            raise PreconditionError(
                "The clock was set.",
                reason="CLOCK_WAS_SET",
                remedy="Nothing to do: the next sweep decides by the new time.",
            )
        begun = time.time()
        await self._registry.forget_old(begun - self._settings.keep_boards.total_seconds())
        await self._refuse_foreign_queue()
        settings, store = self._settings, self._store
        removed = await self._expire(begun - settings.keep_jobs.total_seconds())
        names, running_since = await self._names()
        fresh = settings.fresh_since(begun, running_since)
        kept = set().union(*names.values())
        limit = settings.max_store_bytes
        partials = await asyncio.to_thread(sweep_partials, store, begun - settings.keep_partial.total_seconds())
        swept = Swept(freed_bytes=partials) + await asyncio.to_thread(
            sweep_store, store, kept, settings.unused_since(begun, running_since)
        )
        if limit and swept.size_bytes > limit:
            swept += await asyncio.to_thread(sweep_store, store, kept, fresh, limit)
        if limit and swept.size_bytes > limit:
            early = await self._make_room(names, swept.size_bytes - limit, fresh)
            removed += len(early)
            kept = set().union(*(digests for job_id, digests in names.items() if job_id not in early))
            swept += await asyncio.to_thread(sweep_store, store, kept, fresh, limit)
        write_summary(store, swept, limit, removed)
        return swept

    async def _expire(self, ended_before: float) -> int:
        """Remove the jobs that ended before a time; returns how many."""
        removed = 0
        for line in await self._index.lines():
            if line.state.ended and line.ended < ended_before:
                removed += await self._remove(line.id)
        return removed

    async def _names(self) -> tuple[dict[str, frozenset[str]], float]:
        """Return the digests that each job names, and when the oldest running stage was handed out (else infinity)."""
        names: dict[str, frozenset[str]] = {}
        oldest = math.inf
        for line in await self._index.lines():
            known = self._references.known(line.id, line.created)
            if known is None:
                job = await self._engine.read(line.id)
                if job is None:
                    self._index.forget(line.id)
                    continue
                running = [stage.start for stage in job.stages if stage.state is StageState.RUNNING]
                oldest = min(oldest, *running) if running else oldest
                known = await asyncio.to_thread(self._references.read, job)
            names[line.id] = known
        self._references.keep_only(set(names))
        if self._index.unreadable:
            raise PreconditionError(
                "Some jobs can't be read, and what they name is not known.",
                reason="JOBS_UNREADABLE",
                remedy="Run the release of the orchestrator that wrote them.",
            )
        return names, oldest

    async def _make_room(self, names: dict[str, frozenset[str]], bytes_over: int, ended_before: float) -> set[str]:
        """Remove the oldest ended jobs until what only they name is large enough; returns their ids."""
        lines = [line for line in await self._index.lines() if line.state.ended and line.ended < ended_before]
        users = Counter(digest for digests in names.values() for digest in digests)
        sizes = {item.sha256: item.size_bytes for item in await asyncio.to_thread(list, list_objects(self._store))}
        removed: set[str] = set()
        for line in sorted(lines, key=lambda line: line.ended):
            if bytes_over <= 0:
                break
            if not await self._remove(line.id):
                continue
            removed.add(line.id)
            for digest in names.get(line.id, ()):
                users[digest] -= 1
                bytes_over -= 0 if users[digest] else sizes.get(digest, 0)
        return removed

    async def _remove(self, job_id: str) -> bool:
        try:
            gone = await self._engine.remove(job_id)
        except BoardliftError as error:
            if error.retryable:
                raise
            _log.warning("job_not_removed", job=job_id, reason=error.reason)
            return False
        if not gone:
            self._index.forget(job_id)
        return gone

    async def _refuse_foreign_queue(self) -> None:
        """Guard against an artifact folder whose queue was lost: without its jobs every artifact would look unused."""
        stamp, own = self._store.root / _STAMP, await self._queue_id()
        found = stamp.read_text().strip() if stamp.exists() else ""  # empty: the disk was full when it was written
        if not found:
            partial = stamp.with_suffix(".tmp")
            partial.write_text(own + "\n")
            partial.replace(stamp)
        self._foreign = found not in ("", own)
        if self._foreign:
            raise PreconditionError(
                "The artifacts belong to the jobs of another queue.",
                reason="STORE_OF_ANOTHER_QUEUE",
                remedy="Give each queue an artifact folder of its own.",
            )


def _finding(code: str, message: str, remedy: str) -> toolchain_pb2.Finding:
    severity = toolchain_pb2.Finding.SEVERITY_WARNING
    return toolchain_pb2.Finding(code=code, severity=severity, message=message, remedy=remedy)
