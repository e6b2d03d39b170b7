"""Which jobs there are: id, time and state of each, kept up by reading only what has changed since the last look."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from boardlift_servicekit.buckets import Bucket, Entry

from boardlift_orchestrator.record import JobState, decode_record


@dataclass(frozen=True)
class JobLine:
    """One job in the index."""

    id: str
    """Its id."""
    created: float
    """When it was created."""
    state: JobState
    """Where it is."""


class JobIndex:
    """The jobs of one bucket; a few dozen bytes each, so that old jobs cost next to nothing."""

    def __init__(self, jobs: Bucket) -> None:
        """Index the records in `jobs`."""
        self._jobs = jobs
        self._lines: dict[str, JobLine] = {}
        self._revision = 0
        self._lock = asyncio.Lock()

    async def lines(self) -> list[JobLine]:
        """Return all jobs, in no order.

        Raises:
            UnavailableError: NATS does not answer.
        """
        async with self._lock:
            changed: dict[str, Entry] = {}
            self._revision = await self._jobs.changes(changed, self._revision)
            for entry in changed.values():
                record = decode_record(entry.value)
                self._lines[entry.key] = JobLine(entry.key, record.created, record.state)
            return list(self._lines.values())
