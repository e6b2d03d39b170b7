"""Which jobs there are, a line for each, kept up by reading only what has changed since the last look."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import structlog
from boardlift.errors import DataLossError
from boardlift_servicekit.buckets import REMOVAL_S, Bucket, Entry

from boardlift_orchestrator.record import JobRecord, JobState, StageState, decode_record

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class JobLine:
    """One job in the index."""

    id: str
    """Its id."""
    created: float
    """When it was created."""
    state: JobState
    """Where it is."""
    ended: float = 0.0
    """When it ended."""
    submitter: str = ""
    """Whose turn it takes."""
    priority: int = 0
    """Its place among its submitter's waiting jobs."""
    held: bool = False
    """True while it waits for its turn."""
    front: bool = False
    """True while it has a stage at the stage services, queued or running."""
    board: bool = False
    """True while it has a stage at a board, queued or running."""
    stopped: bool = False
    """True when a stage was stopped that somebody had begun."""

    @property
    def active(self) -> bool:
        """True while it is worked on."""
        return not self.held and not self.state.ended

    @property
    def waiting(self) -> bool:
        """True while it waits for its turn."""
        return self.held and not self.state.ended


def job_line(job: JobRecord) -> JobLine:
    """Return a job's line."""
    at = {stage.stage == "board" for stage in job.stages if stage.state is StageState.RUNNING}
    return JobLine(
        id=job.id,
        created=job.created,
        state=job.state,
        ended=job.ended,
        submitter=job.submitter or job.owner,
        priority=job.priority,
        held=job.held,
        front=False in at,
        board=True in at,
        stopped=any(stage.state is StageState.CANCELLED and stage.worker for stage in job.stages),
    )


class JobIndex:
    """The jobs of one bucket; a few dozen bytes each, so that old jobs cost next to nothing."""

    def __init__(self, jobs: Bucket) -> None:
        """Index the records in `jobs`."""
        self._jobs = jobs
        self._lines: dict[str, JobLine] = {}
        self._unreadable: set[str] = set()
        self._revision = 0
        self._looked = 0.0
        self._lock = asyncio.Lock()

    async def lines(self) -> list[JobLine]:
        """Return all jobs, in no order, but those that are `unreadable`.

        Raises:
            UnavailableError: NATS does not answer.
        """
        async with self._lock:
            begun = time.time()
            if not 0 <= begun - self._looked < REMOVAL_S / 2:  # away for long: marks of removals may have come and gone
                self._lines, self._unreadable, self._revision = {}, set(), 0
            changed: dict[str, Entry] = {}
            removed: set[str] = set()
            self._revision = await self._jobs.changes(changed, self._revision, removed)
            for entry in changed.values():
                self._take(entry)
            for key in removed:
                self._lines.pop(key, None)
                self._unreadable.discard(key)
            self._looked = begun
            return list(self._lines.values())

    @property
    def unreadable(self) -> frozenset[str]:
        """Jobs whose records could not be read at the last look: what they name is not known."""
        return frozenset(self._unreadable)

    def _take(self, entry: Entry) -> None:
        """Note a changed record; one that can't be read must not hide all others."""
        try:
            self._lines[entry.key] = job_line(decode_record(entry.value))
            self._unreadable.discard(entry.key)
        except DataLossError as error:
            _log.error("job_unreadable", job=entry.key, error=error.metadata["cause"])
            self._lines.pop(entry.key, None)
            self._unreadable.add(entry.key)

    def forget(self, job_id: str) -> None:
        """Drop the line of a job that turned out to be gone: its removal was not seen in time."""
        self._lines.pop(job_id, None)
