"""Drive jobs: load the record, apply an event, write it back by compare-and-set, then do what the machine asked for.

Order on each transition: compare-and-set, publish, acknowledge. A crash at any point is repaired by redelivery: the
event is then stale and the machine asks again for what the record says. Any number of engines may run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog
from boardlift.errors import (
    AlreadyExistsError,
    BoardliftError,
    ConflictError,
    InternalError,
    PreconditionError,
    UnavailableError,
)
from boardlift.v1 import job_pb2, queue_pb2, toolchain_pb2
from boardlift_servicekit.buckets import REMOVAL_S, Bucket
from boardlift_servicekit.consume import acknowledge
from boardlift_servicekit.messaging import (
    publish_job_event,
    publish_note,
    publish_stop,
    publish_task,
    publish_timer,
    purge_events,
    purge_tasks,
)
from boardlift_servicekit.names import TOKEN
from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from boardlift_orchestrator import machine
from boardlift_orchestrator.check_boards import GOVERNOR
from boardlift_orchestrator.convert import read_outcome
from boardlift_orchestrator.events import (
    Action,
    Arm,
    Broken,
    Disarm,
    Event,
    Outcome,
    Placed,
    Publish,
    PurgeTasks,
    Started,
    StopRunning,
    Tick,
    Withdraw,
)
from boardlift_orchestrator.record import Failure, JobRecord, Stage, StageState, decode_record, encode_record
from boardlift_orchestrator.registry import Registry
from boardlift_orchestrator.requests import build_task, needed_results
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.schedule import choose_place, describe_wait

_RACES = 100
_DELIVERIES = 50
_WAIT_FOR_BOARD_S = 3.0
_PATIENCE_S = 4.0
_log = structlog.get_logger(__name__)


class Engine:
    """Applies events to jobs."""

    def __init__(self, client: Client, jobs: Bucket, results: Results, registry: Registry) -> None:
        """Keep records in `jobs`, read stage results from `results`, know boards from `registry`."""
        self._client = client
        self._js = client.jetstream()
        self._jobs = jobs
        self._results = results
        self._registry = registry
        self.moved: Callable[[], None] = lambda: None
        """Called whenever a job's stages have moved on: then it may be another job's turn."""
        self.check_queue: Callable[[], None] = lambda: None
        """Raises when the queue can be reached and stores nothing."""

    async def create(self, job: JobRecord) -> JobRecord:
        """Store a new job and hand out its first stage; the record that already has its id wins.

        Returns:
            The stored record.
        """
        first = machine.begin(job, time.time())
        try:
            revision = await self._jobs.put(job.id, encode_record(first.job), revision=0)
        except ConflictError as error:
            entry = await self._jobs.get(job.id)
            if entry is None:  # the mark of its removal: the queue still takes its tasks for those of the removed one
                raise AlreadyExistsError(
                    f"A job {job.id} was removed a moment ago.",
                    reason="JOB_REMOVED_LATELY",
                    remedy=f"Choose another id and request id, or wait {REMOVAL_S // 60} minutes.",
                    metadata={"job_id": job.id},
                ) from error
            known = decode_record(entry.value)
            if known.request_id == job.request_id and known.spec == job.spec:
                await self._perform(known, machine.repair(known))  # the first call may have died in between
            return known
        await self._perform(first.job, first.actions)
        await self._tell(first.job, revision)
        return first.job

    async def wait_connected(self, *, to_write: bool = False) -> None:
        """Wait a moment for NATS when it is away.

        Raises:
            UnavailableError: It stays away, or it stores nothing and that is needed; the caller should repeat the call,
                with the same request id.
        """
        end = time.monotonic() + _PATIENCE_S
        while not self._client.is_connected:
            if time.monotonic() >= end:
                raise UnavailableError(
                    "The job queue can't be reached.", reason="NATS_UNAVAILABLE", remedy="Try again in a moment."
                )
            await asyncio.sleep(0.1)
        if to_write:
            self.check_queue()

    async def read(self, job_id: str) -> JobRecord | None:
        """Return a job's record."""
        entry = await self._jobs.get(job_id)
        return decode_record(entry.value) if entry else None

    async def remove(self, job_id: str) -> bool:
        """Remove a job that has ended, with its events; False when there is none.

        Raises:
            PreconditionError: JOB_NOT_ENDED.
        """
        job = await self.read(job_id)
        if job is None:
            return False
        if not job.state.ended:
            raise PreconditionError(
                f"The job {job_id} has not ended.",
                reason="JOB_NOT_ENDED",
                remedy=f"Stop it first: boardlift jobs cancel {job_id}.",
                metadata={"job_id": job_id},
            )
        await self._jobs.remove(job_id)  # first: what is left behind after a crash is out of everybody's sight
        await purge_tasks(self._js, job_id)
        await purge_events(self._js, job_id)
        _log.info("job_removed", job=job_id)
        return True

    async def apply(self, job_id: str, event: Event) -> JobRecord | None:
        """Apply an event to a job and do what follows; None when there is no such job."""
        for _ in range(_RACES):
            entry = await self._jobs.get(job_id)
            if entry is None:
                return None
            job = decode_record(entry.value)
            step = machine.step(job, event, time.time())
            revision = entry.revision
            if step.job is not job:
                try:
                    revision = await self._jobs.put(job_id, encode_record(step.job), revision=revision)
                except ConflictError:
                    continue
            await self._perform(step.job, step.actions)
            if step.job is not job or isinstance(event, Outcome):
                await self._tell(step.job, revision, event)
            if step.job is not job and not isinstance(event, Started):
                self.moved()
            if step.job.state.ended and not job.state.ended:
                _log.info("job_ended", job=job_id, state=step.job.state.value)
            return step.job
        raise ConflictError(f"The record of job {job_id} changes all the time.", metadata={"job": job_id})

    async def advance(self, job_id: str, event: Event) -> JobRecord | None:
        """Apply an event as `apply` does; a job that can't go on by it, now or later, ends with the reason.

        Raises:
            BoardliftError: One that may pass; the event should be applied again.
        """
        try:
            return await self.apply(job_id, event)
        except BoardliftError as error:
            return await self.break_off(job_id, error)

    async def break_off(self, job_id: str, error: BoardliftError) -> JobRecord | None:
        """End a job that can't go on because of an error; one that may pass is raised again."""
        if error.retryable:
            raise error
        _log.warning("job_broken", job=job_id, reason=error.reason, error=error.message)
        return await self.apply(job_id, Broken(_describe(error)))

    async def note(self, event: job_pb2.WatchJobResponse, job_id: str, name: str) -> None:
        """Tell a job's watchers something, once in a while under the same name."""
        await publish_note(self._js, event, job_id, name)

    async def stop_again(self, job_id: str) -> None:
        """Tell whoever still works for a job that has ended to stop: the first word may have been lost."""
        await publish_stop(self._client, queue_pb2.StopStage(job_id=job_id))

    async def on_outcome(self, message: Msg) -> None:
        """Handle a worker's report."""
        try:
            report = queue_pb2.StageOutcome.FromString(message.data)
        except DecodeError:
            _log.exception("outcome_unreadable", subject=message.subject)
            await acknowledge(message)
            return
        with structlog.contextvars.bound_contextvars(job=report.job_id, stage=report.stage, variant=report.variant):
            if not await self._may_report(message.subject, report):
                _log.error("outcome_of_somebody_else", subject=message.subject)
                await acknowledge(message)
                return
            event: Event = await self._results.checked(read_outcome(report))
            if message.metadata.num_delivered > _DELIVERIES:  # a fault of ours: don't try for ever
                text, remedy = "The orchestrator can't handle a stage's outcome.", "Its log says why; report it."
                event = Broken(Failure("OUTCOME_NOT_APPLIED", text, remedy=remedy))
            await self.advance(report.job_id, event)
        await acknowledge(message)

    async def _may_report(self, subject: str, report: queue_pb2.StageOutcome) -> bool:
        """Tell whether a report is its sender's to make: NATS lets a board publish under its own name only."""
        if subject != f"res.{report.worker}.{report.job_id}" or not TOKEN.fullmatch(report.job_id):
            return False
        return report.stage in ("board", "diagnose") or not await self._registry.knows(report.worker)

    async def on_timer(self, message: Msg) -> None:
        """Handle a timer: the message names the job."""
        await self.advance(message.data.decode(), Tick())
        await acknowledge(message)

    async def _perform(self, job: JobRecord, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Publish):
                await self._publish(job, action)
            elif isinstance(action, StopRunning):
                stage, _, variant = action.key.partition("/")
                stop = queue_pb2.StopStage(job_id=job.id, stage=stage, variant=variant, attempt=action.attempt)
                await publish_stop(self._client, stop)
            elif isinstance(action, PurgeTasks):
                await purge_tasks(self._js, job.id)
            elif isinstance(action, Withdraw):
                await purge_tasks(self._js, job.id, prefix=f"task.board.{action.place}")
            elif isinstance(action, Arm):
                await publish_timer(self._js, job.id, action.name, action.delay_s)
            elif isinstance(action, Disarm):
                await purge_tasks(self._js, job.id, prefix=f"task.later.{action.name}")

    async def _publish(self, job: JobRecord, action: Publish) -> None:
        stage = next(item for item in job.stages if item.key == action.key)
        spec: job_pb2.JobSpec = await self._results.spec(job)
        place = ""
        if stage.stage == "board":
            place = await self._place(job, stage, spec)
            if not place:
                return
        loaded = {name: await self._results.result(source) for name, source in needed_results(job, stage).items()}
        task = build_task(job, stage, spec, loaded)
        await publish_task(self._js, task, place=place, delay_s=action.delay_s)

    async def _place(self, job: JobRecord, stage: Stage, spec: job_pb2.JobSpec) -> str:
        if stage.place:
            return stage.place
        needs = GOVERNOR if spec.perf.governor else ""
        choosy = spec.board.id or spec.board.labels or stage.avoid or needs
        boards = await self._registry.views() if choosy else []
        place = choose_place(spec.board, spec.target, boards, stage.avoid, needs)
        named = spec.board.id and not any(board.id == spec.board.id and board.usable for board in boards)
        if named or not place:
            line = toolchain_pb2.LogLine(text=describe_wait(spec.board, spec.target, boards, needs), source="boardlift")
            event = job_pb2.WatchJobResponse(stage=stage.stage, variant=stage.variant, log=line)
            event.event_time.GetCurrentTime()
            await self.note(event, job.id, f"{stage.variant}:{stage.attempt}")
        if not place:
            await publish_timer(self._js, job.id, "place", _WAIT_FOR_BOARD_S)
            return ""
        if place.startswith("id."):
            placed = await self.apply(job.id, Placed(stage.stage, stage.variant, stage.attempt, place))
            now = placed.find(stage.stage, stage.variant) if placed else None
            if now is None or now.state is not StageState.RUNNING or now.attempt != stage.attempt:
                return ""
            return now.place
        return place

    async def _tell(self, job: JobRecord, revision: int, event: Any = None) -> None:
        message = job_pb2.WatchJobResponse(job=await self._results.view(job))
        if isinstance(event, Outcome):
            message.stage, message.variant = event.stage, event.variant
        message.event_time.GetCurrentTime()
        await publish_job_event(self._js, message, job.id, revision)


def _describe(error: BoardliftError) -> Failure:
    fallback = "" if not isinstance(error, InternalError) else "Report this with the orchestrator's log."
    return Failure(error.reason, error.message, remedy=error.remedy or fallback)
