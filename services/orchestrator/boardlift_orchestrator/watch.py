"""Follow jobs: one hub per process for all watchers.

The hub only wakes; what a watcher gets is always read from the EVT stream by sequence. So nothing is missed when NATS
restarts, a slow watcher holds nobody up, and no consumer is made per watcher.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any, Final

from boardlift.errors import NotFoundError, UnavailableError
from boardlift.v1 import job_pb2
from boardlift_servicekit.messaging import EVENT_STREAM, read_after
from nats.aio.client import Client
from nats.aio.msg import Msg

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.results import Results

_BATCH: Final = 256
_LOOK_S: Final = 2.0
_SETTLE_S: Final = 0.02
_ENDED: Final = (job_pb2.Job.STATE_SUCCEEDED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)


class EventHub:
    """Wakes the watchers of a job when something happens to it."""

    def __init__(self, client: Client) -> None:
        """Listen on `client` once started."""
        self._client = client
        self._wakes: dict[str, set[asyncio.Event]] = defaultdict(set)

    async def start(self) -> None:
        """Begin to listen."""
        self._subscription = await self._client.subscribe("evt.job.*.*", cb=self._on_event)

    async def stop(self) -> None:
        """Listen no more."""
        if not self._client.is_closed:
            await self._subscription.unsubscribe()

    def add(self, job: str) -> asyncio.Event:
        """Return an event that is set whenever something happens to the job."""
        wake = asyncio.Event()
        self._wakes[job].add(wake)
        return wake

    def remove(self, job: str, wake: asyncio.Event) -> None:
        """Forget a watcher."""
        self._wakes[job].discard(wake)
        if not self._wakes[job]:
            del self._wakes[job]

    async def _on_event(self, message: Msg) -> None:
        for wake in self._wakes.get(message.subject.split(".")[2], ()):
            wake.set()


class JobFollower:
    """Reads a job's events for its watchers."""

    def __init__(self, client: Client, engine: Engine, results: Results, hub: EventHub) -> None:
        """Read events over `client` and records from `engine`; be woken by `hub`."""
        self._client = client
        self._engine = engine
        self._results = results
        self._hub = hub

    async def follow(self, job: str, after: int) -> AsyncIterator[job_pb2.WatchJobResponse]:
        """Yield the job as it is, then its events after a sequence, until it has ended.

        Raises:
            NotFoundError: There is no such job.
        """
        wake = self._hub.add(job)
        try:
            yield await self._snapshot(job, after)
            idle, newest = 0, 0
            while True:
                wake.clear()
                found = False
                async for event in self._read(job, after):
                    found, after = True, event.sequence
                    if event.HasField("job"):
                        if event.job.revision < newest:
                            continue  # two orchestrators wrote one after the other and told the other way round
                        newest = event.job.revision
                    yield event
                    if event.HasField("job") and event.job.state in _ENDED:
                        return
                if found:
                    idle = 0
                    continue
                idle += 1
                snapshot = await self._snapshot(job, after) if idle > 1 else None
                if snapshot is not None and snapshot.job.state in _ENDED:
                    yield snapshot
                    return
                await self._wait(wake)
        finally:
            self._hub.remove(job, wake)

    async def _wait(self, wake: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(wake.wait(), timeout=_LOOK_S)
        except asyncio.TimeoutError:
            return
        await asyncio.sleep(_SETTLE_S)  # an event is heard a little before it is stored

    async def _read(self, job: str, after: int) -> AsyncIterator[Any]:
        more = True
        while more:
            try:
                messages, more = await read_after(self._client, EVENT_STREAM, f"evt.job.{job}.>", after, most=_BATCH)
            except UnavailableError:
                return  # the server restarts; the next look reads on from the same sequence
            for message in messages:
                event = job_pb2.WatchJobResponse.FromString(message.data)
                event.sequence = after = message.sequence
                yield event

    async def _snapshot(self, job: str, sequence: int) -> Any:
        record = await self._engine.read(job)
        if record is None:
            raise job_not_found(job)
        message = job_pb2.WatchJobResponse(sequence=sequence, job=await self._results.view(record, with_spec=True))
        message.event_time.GetCurrentTime()
        return message


def job_not_found(job: str) -> NotFoundError:
    """The error for a job id that is not known."""
    return NotFoundError(
        f"There is no job {job[:60]}.",
        reason="JOB_NOT_FOUND",
        remedy="List the jobs with `boardlift jobs`.",
        metadata={"job_id": job[:60]},
    )
