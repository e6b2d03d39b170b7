"""Diagnoses through the queue: a board pulls one like a board stage, and whoever asked waits for its outcome.

A diagnosis changes no job's record, so nothing is kept of it: it lives as long as the call. It travels under a random
name of its own. When the caller leaves, its task is taken from the queue and the board told to stop; when the
orchestrator dies, the task's deadline ends it. Asking again joins the board's running execution or gets its stored
result, since both go by the request's digest.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, Final

import structlog
from boardlift.errors import (
    CancelledError,
    DeadlineError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from boardlift.v1 import board_agent_pb2, job_pb2, queue_pb2, toolchain_pb2
from boardlift_servicekit.messaging import publish_stop, publish_task, purge_tasks
from boardlift_servicekit.names import check_token
from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from boardlift_orchestrator.registry import Registry
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.schedule import choose_place, has_labels

LIMIT_S: Final = 1800.0
"""Longest life of a diagnosis, waiting included."""
_TRIES: Final = 3
_LOOK_S: Final = 2.0
_RETURN_S: Final = 20.0
"""Boards renew their presence every 5 s and count as gone after 15 s: so long after NATS was away none is missed."""
_MOST_BYTES: Final = 768_000
_KEPT: Final = 4096
_log = structlog.get_logger(__name__)
Response = job_pb2.DiagnoseJobResponse


class QueuedDiagnoses:
    """Hands diagnoses to boards and brings their results back."""

    def __init__(self, client: Client, results: Results, registry: Registry) -> None:
        """Queue over `client`, read from `results`, know boards from `registry`."""
        self._client = client
        self._results = results
        self._registry = registry

    async def run(self, request: job_pb2.DiagnoseJobRequest, target: str) -> AsyncIterator[Response]:
        """Yield events, the result last.

        Args:
            request: What to look at, and which boards may.
            target: Target of the job.

        Raises:
            PreconditionError: NO_BOARD_FOR_DIAGNOSIS.
            BoardliftError: The board could not do it.
        """
        if request.board.id:
            check_token("board id", request.board.id)
        one = _Diagnosis(self._client, self._results, self._registry, request, target)
        number = 0
        try:
            await one.begin()
            async for event in one.events():
                number += 1
                event.sequence = number
                yield event
        finally:
            await one.end()


class _Diagnosis:
    """One diagnosis on its way."""

    def __init__(
        self, client: Client, results: Results, registry: Registry, request: job_pb2.DiagnoseJobRequest, target: str
    ) -> None:
        self._client, self._results, self._registry = client, results, registry
        self._request, self._target = request, target
        self._task = queue_pb2.StageTask(
            job_id=f"d-{uuid.uuid4().hex}", stage="diagnose", attempt=0, diagnose=request.diagnosis
        )
        self._task.deadline_time.FromNanoseconds(int((time.time() + LIMIT_S) * 1e9))
        self._heard: asyncio.Queue[Msg] = asyncio.Queue(_KEPT)
        self._subscriptions: list[Any] = []
        self._place = ""
        self._avoid: list[str] = []
        self._begun = ""
        self._done = False
        self._reconnects = 0
        self._patient_until = 0.0

    async def begin(self) -> None:
        """Listen, then queue the task."""
        if self._task.ByteSize() > _MOST_BYTES:
            raise InvalidInputError(
                "The diagnosis names too many nodes or outputs for the queue.",
                reason="DIAGNOSIS_TOO_LARGE",
                remedy="Give a board's address: boardlift diagnose JOB --agent HOST:PORT.",
            )
        for subject in (f"res.*.{self._task.job_id}", f"evt.job.{self._task.job_id}.*"):
            self._subscriptions.append(await self._client.subscribe(subject, cb=self._keep))
        await self._client.flush()
        await self._queue()

    async def end(self) -> None:
        """Leave nothing behind in the queue or on a board."""
        for subscription in self._subscriptions:
            if not self._client.is_closed:
                await subscription.unsubscribe()
        if self._task.attempt and not self._done:
            try:
                await self._withdraw()
                await publish_stop(self._client, queue_pb2.StopStage(job_id=self._task.job_id))
            except UnavailableError as error:
                _log.info("diagnosis_left_to_its_deadline", error=error.message)

    async def events(self) -> AsyncIterator[Response]:
        """Yield what is heard until the outcome."""
        text = f"queued for {self._place}"
        yield Response(log=toolchain_pb2.LogLine(text=text, source="boardlift"))
        self._reconnects = self._client.stats["reconnects"]
        while True:
            if time.time_ns() > self._task.deadline_time.ToNanoseconds():
                raise DeadlineError(
                    "No board has answered in time.",
                    reason="DIAGNOSIS_DEADLINE_EXCEEDED",
                    remedy="Look with `boardlift boards` whether a fitting board is free, then ask again.",
                )
            try:
                message = await asyncio.wait_for(self._heard.get(), _LOOK_S)
            except asyncio.TimeoutError:
                await self._look_if_possible()
                continue
            event = await self._read(message)
            if event is not None:
                yield event
            if self._done:
                return

    async def _look_if_possible(self) -> None:
        """Look after the task, with patience for a queue that is away and for boards that have not come back to it."""
        try:
            reconnects = self._client.stats["reconnects"]
            if reconnects != self._reconnects:
                await self._queue()  # the outcome may have been missed: ask again
                self._reconnects = reconnects
            await self._look()
        except UnavailableError as error:
            _log.info("queue_away", error=error.message)
            self._patient_until = time.monotonic() + _RETURN_S
        except PreconditionError:
            if time.monotonic() > self._patient_until:
                raise

    async def _look(self) -> None:
        """Queue it elsewhere when the board it waits for is gone; raises when nobody is left who could do it."""
        boards = await self._registry.views()
        if self._begun and not any(board.id == self._begun and board.online for board in boards):
            self._begun = ""
        if self._begun:
            return
        if self._place.startswith("id.") and not any(b.usable and self._place == f"id.{b.id}" for b in boards):
            await self._queue()
        else:
            await self._choose()

    async def _keep(self, message: Msg) -> None:
        if message.subject.startswith("res.") or self._heard.qsize() < _KEPT // 2:  # lines may get lost, outcomes not
            await self._heard.put(message)

    async def _queue(self) -> None:
        place = await self._choose()
        if self._place and place != self._place:
            await self._withdraw()
        self._place = place
        self._begun = ""
        self._task.attempt += 1
        await publish_task(self._client.jetstream(), self._task, place=place)

    async def _withdraw(self) -> None:
        prefix = f"task.board.{self._place}"
        await purge_tasks(self._client.jetstream(), self._task.job_id, prefix=prefix)

    async def _choose(self) -> str:
        wanted = self._request.board
        boards = await self._registry.views()
        if wanted.id and all(board.id != wanted.id for board in boards):
            raise NotFoundError(
                f"No board {wanted.id} has registered.",
                reason="BOARD_NOT_FOUND",
                remedy="List the boards with `boardlift boards`.",
            )
        fitting = [b for b in boards if b.target == self._target and has_labels(b.labels, wanted.labels)]
        usable = [b for b in fitting if b.usable and wanted.id in ("", b.id)]
        place = choose_place(wanted, self._target, boards, self._avoid) if usable else ""
        if not place:
            raise PreconditionError(
                f"No board for {self._target} can take a diagnosis now.",
                reason="NO_BOARD_FOR_DIAGNOSIS",
                remedy="See boardlift boards: a board must be online, in rotation and not leased.",
                metadata={"target": self._target, "board": wanted.id},
            )
        return place

    async def _read(self, message: Msg) -> Response | None:
        try:
            if message.subject.startswith("evt."):
                heard = job_pb2.WatchJobResponse.FromString(message.data)
                kind = heard.WhichOneof("event")
                return Response(**{kind: getattr(heard, kind)}) if kind in ("progress", "log") else None
            outcome = queue_pb2.StageOutcome.FromString(message.data)
        except DecodeError:
            _log.warning("diagnosis_event_unreadable", subject=message.subject)
            return None
        mine = message.subject == f"res.{outcome.worker}.{self._task.job_id}"
        meant = self._place in (f"id.{outcome.worker}", f"pool.{self._target}")
        if not (mine and meant):
            return None
        if outcome.started:
            self._begun = outcome.worker
            return None
        if outcome.HasField("result"):
            return await self._finish(outcome)
        if outcome.cancelled:
            raise CancelledError("The diagnosis was stopped.")
        return await self._failed(outcome)

    async def _finish(self, outcome: queue_pb2.StageOutcome) -> Response:
        try:
            result = board_agent_pb2.DiagnoseResult.FromString(await self._results.read(outcome.result))
        except DecodeError as error:
            raise InternalError(
                f"The board {outcome.worker} wrote no diagnosis.",
                reason="RESULT_UNREADABLE",
                remedy="Ask again; if it repeats, the agent's log says why.",
            ) from error
        self._done = True
        return Response(result=result)

    async def _failed(self, outcome: queue_pb2.StageOutcome) -> Response | None:
        failure = outcome.failure
        if outcome.attempt < self._task.attempt:
            return None  # of an attempt that was given up
        if outcome.retryable and self._task.attempt < _TRIES:
            self._avoid.append(outcome.worker)
            await self._queue()
            text = f"{outcome.worker} could not ({failure.code}); queued for {self._place}"
            return Response(log=toolchain_pb2.LogLine(text=text, source="boardlift"))
        self._done = True
        kind = InvalidInputError if failure.user_fault else UnavailableError if outcome.retryable else InternalError
        raise kind(
            failure.message or "The board could not do it.",
            reason=failure.code or "DIAGNOSIS_FAILED",
            remedy=failure.remedy,
            metadata={"board": outcome.worker},
        )
