"""Follow jobs: one hub per process for all watchers.

The hub only wakes; what a watcher gets is always read from the EVT stream by sequence. So nothing is missed when NATS
restarts, a slow watcher holds nobody up, and no consumer is made per watcher.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

import structlog
from boardlift.errors import NotFoundError, UnavailableError
from boardlift.v1 import job_pb2
from boardlift_servicekit.messaging import EVENT_STREAM, StoredMessage, read_after
from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.results import Results

_BATCH: Final = 256
_LOOK_S: Final = 2.0
_KEPT: Final = 2000
_SETTLE_S: Final = 0.02
_log = structlog.get_logger(__name__)
_ENDED: Final = (job_pb2.Job.STATE_SUCCEEDED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)


class JobTail:
    """The latest events of one job, read once for all of its watchers."""

    def __init__(self, client: Client, job: str, after: int) -> None:
        """Read over `client` what comes after a sequence."""
        self._client = client
        self._subject = f"evt.job.{job}.>"
        self._events: deque[Any] = deque()
        self._floor = self._newest = after
        self._lock = asyncio.Lock()
        self._stale = True
        self.wakes: set[asyncio.Event] = set()

    def wake(self) -> None:
        """Have the next reader look, and wake all of them."""
        self._stale = True
        for wake in self.wakes:
            wake.set()

    async def read(self, after: int, look: bool) -> list[Any]:
        """Return the events after a sequence; `look` asks the server even if nothing was heard."""
        async with self._lock:
            if self._stale or look:
                self._stale = False
                await self._load()
        if after >= self._floor:
            return [event for event in self._events if event.sequence > after]
        return [event async for event in self._stored(after)]

    async def _load(self) -> None:
        async for event in self._stored(self._newest):
            self._events.append(event)
            self._newest = event.sequence
            if len(self._events) > _KEPT:
                self._floor = self._events.popleft().sequence

    async def _stored(self, after: int) -> AsyncIterator[Any]:
        more = True
        while more:
            try:
                messages, more = await read_after(self._client, EVENT_STREAM, self._subject, after, most=_BATCH)
            except UnavailableError:
                self._stale = True  # the server restarts; the next look reads on from the same sequence
                return
            for message in messages:
                after = message.sequence
                event = _read_event(message)
                if event is not None:
                    yield event


def _read_event(message: StoredMessage) -> Any:
    """Return what a message says; None for one that says nothing, or more than its subject is for.

    Boards and services may write lines and progress; how a job stands only the orchestrator says.
    """
    try:
        event = job_pb2.WatchJobResponse.FromString(message.data)
    except DecodeError:
        event = job_pb2.WatchJobResponse()
    if event.WhichOneof("event") != message.subject.rpartition(".")[2]:
        _log.error("event_not_taken", subject=message.subject, sequence=message.sequence)
        return None
    event.sequence = message.sequence
    return event


class EventHub:
    """Wakes the watchers of a job when something happens to it."""

    def __init__(self, client: Client) -> None:
        """Listen on `client` once started."""
        self._client = client
        self._tails: dict[str, JobTail] = {}

    async def start(self) -> None:
        """Begin to listen."""
        self._subscription = await self._client.subscribe("evt.job.*.*", cb=self._on_event)

    async def stop(self) -> None:
        """Listen no more."""
        if not self._client.is_closed:
            await self._subscription.unsubscribe()

    def join(self, job: str, after: int) -> tuple[JobTail, asyncio.Event]:
        """Return the job's tail, and an event that is set whenever something happens to the job."""
        tail = self._tails.setdefault(job, JobTail(self._client, job, after))
        wake = asyncio.Event()
        tail.wakes.add(wake)
        return tail, wake

    def leave(self, job: str, wake: asyncio.Event) -> None:
        """Forget a watcher; with the last one the tail goes."""
        tail = self._tails[job]
        tail.wakes.discard(wake)
        if not tail.wakes:
            del self._tails[job]

    async def _on_event(self, message: Msg) -> None:
        tail = self._tails.get(message.subject.split(".")[2])
        if tail is not None:
            tail.wake()


class JobFollower:
    """Reads a job's events for its watchers."""

    def __init__(self, engine: Engine, results: Results, hub: EventHub) -> None:
        """Read records from `engine` and events from `hub`."""
        self._engine = engine
        self._results = results
        self._hub = hub

    async def follow(self, job: str, after: int) -> AsyncIterator[job_pb2.WatchJobResponse]:
        """Yield the job as it is, then its events after a sequence, until it has ended.

        Raises:
            NotFoundError: There is no such job.
        """
        tail, wake = self._hub.join(job, after)
        try:
            yield await self._snapshot(job, after)
            idle, newest = 0, 0
            while True:
                wake.clear()
                found = False
                for event in await tail.read(after, look=idle > 0):
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
            self._hub.leave(job, wake)

    async def _wait(self, wake: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(wake.wait(), timeout=_LOOK_S)
        except asyncio.TimeoutError:
            return
        await asyncio.sleep(_SETTLE_S)  # an event is heard a little before it is stored

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
