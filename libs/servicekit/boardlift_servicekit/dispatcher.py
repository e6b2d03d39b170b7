"""The dispatcher: consume a task, run its stage, store the result, publish the outcome, acknowledge.

The same class runs beside the orchestrator, dialling the stage services, and inside a worker or a board agent, pulling:

    runner = GrpcRunner(channels.connect("127.0.0.1:7402"))
    dispatcher = Dispatcher(client, store, runner, worker="b1", consumers=("board-b1", "pool-rdk-x5"), slots=1)
    await dispatcher.start()
    ...
    await dispatcher.stop()

`pause` and `resume` take a board out of rotation; `busy_job` says what it works on. With several consumers the slots
are shared, and a message too many is given back at once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import grpc
import structlog
from boardlift.errors import BoardliftError, CancelledError, InternalError
from boardlift.v1 import artifact_pb2, queue_pb2, toolchain_pb2
from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from boardlift_servicekit.consume import Consume, Pace, Slots, acknowledge, give_back
from boardlift_servicekit.event_tap import EventTap
from boardlift_servicekit.messaging import (
    TASK_STREAM,
    publish_outcome,
    publish_started,
)
from boardlift_servicekit.names import check_token
from boardlift_servicekit.stage_calls import StageRunner, is_retryable

RESULT_MEDIA_TYPE: Final = "application/x-protobuf"
_STORE_TRIES: Final = 20
_REFUSED_S: Final = 1.0
_log = structlog.get_logger(__name__)


class ResultStore(Protocol):
    """Where whole results go."""

    async def put_bytes(self, data: bytes, media_type: str) -> artifact_pb2.ArtifactRef:
        """Store bytes and return their name."""
        ...


class Dispatcher:
    """Turns queue messages into stage executions."""

    def __init__(
        self,
        client: Client,
        store: ResultStore,
        runner: StageRunner,
        *,
        worker: str,
        consumers: Sequence[str],
        slots: int,
        pace: Pace | None = None,
        refuse: Callable[[queue_pb2.StageTask], Awaitable[bool]] | None = None,
    ) -> None:
        """Serve durable consumers of the TASK stream.

        Args:
            client: NATS connection.
            store: Receives each stage's whole result.
            runner: Runs the stages.
            worker: Who we are: one token, shown in the job's records. For a board: its id.
            consumers: Names of the consumers; earlier ones are asked first.
            slots: Stages at the same time, over all consumers.
            pace: How the consumers are served.
            refuse: Says of a task whether somebody else should have it; it then goes back to the queue for a second.

        Raises:
            InvalidInputError: The worker's name is not a token.
        """
        self._client = client
        self._js = client.jetstream()
        self._store = store
        self._runner = runner
        self._worker = check_token("worker", worker)
        self._refuse = refuse
        self._slots = Slots(slots)
        self._consumes = [
            Consume(client, TASK_STREAM, name, self._handle, slots=self._slots, pace=pace) for name in consumers
        ]
        self._numbers = itertools.count()
        self._running: dict[int, queue_pb2.StageTask] = {}
        self._stopped: set[int] = set()
        self._stops: dict[int, asyncio.Task[None]] = {}

    async def start(self) -> Dispatcher:
        """Begin to take tasks and to listen for stops."""
        self._control = await self._client.subscribe("ctl.job.*", cb=self._on_stop)
        for consume in self._consumes:
            await consume.start()
        return self

    async def stop(self, grace_s: float = 0.0) -> None:
        """Take nothing more; what still runs after `grace_s` goes back to the queue."""
        await asyncio.gather(*(consume.stop(grace_s) for consume in self._consumes))
        if not self._client.is_closed:
            await self._control.unsubscribe()
        for stop in self._stops.values():
            stop.cancel()
        await asyncio.gather(*self._stops.values(), return_exceptions=True)

    def resize(self, slots: int) -> None:
        """Run so many stages at the same time from now on; those in work go on."""
        self._slots.size = slots

    def pause(self) -> None:
        """Take no further task; running ones go on."""
        for consume in self._consumes:
            consume.pause()

    async def resume(self) -> None:
        """Take tasks again."""
        for consume in self._consumes:
            await consume.resume()

    @property
    def busy_job(self) -> str:
        """Id of a job that is being worked on; empty when there is none."""
        return next((task.job_id for task in self._running.values()), "")

    @property
    def busy_slots(self) -> int:
        """Stages running now."""
        return len(self._running)

    async def _handle(self, message: Msg) -> None:
        try:
            task = queue_pb2.StageTask.FromString(message.data)
        except DecodeError:
            _log.exception("task_unreadable", subject=message.subject)
            await acknowledge(message)
            return
        if self._refuse is not None and await self._refuse(task):
            _log.info("left_to_somebody_else", job=task.job_id, stage=task.stage, variant=task.variant)
            await give_back(message, _REFUSED_S)
            return
        key = next(self._numbers)
        self._running[key] = task
        context = {"job": task.job_id, "stage": task.stage, "variant": task.variant, "attempt": task.attempt}
        try:
            with structlog.contextvars.bound_contextvars(**context):
                await publish_started(self._client, self._outcome(task, started=True))
                outcome = await self._run(task, key)
                _log.info("stage_ended", cached=outcome.cached, failure=outcome.failure.code or None)
                await publish_outcome(self._js, outcome)
        finally:
            self._running.pop(key, None)
            self._stopped.discard(key)
        await acknowledge(message)

    async def _run(self, task: queue_pb2.StageTask, key: int) -> queue_pb2.StageOutcome:
        events = EventTap(self._client, task)
        try:
            if key in self._stopped:  # while its start was being reported
                raise CancelledError("The stage was stopped.")
            result: Any = await self._runner.run(task, events.emit)
            reference = await self._keep(result.SerializeToString(deterministic=True))
        except BoardliftError as error:
            if isinstance(error, CancelledError) and key in self._stopped:
                return self._outcome(task, cancelled=True)
            _log.warning("stage_not_run", reason=error.reason, error=error.message)
            return self._outcome(task, failure=describe_error(error), retryable=is_retryable(error))
        except Exception as error:  # noqa: BLE001 - the outermost boundary of a stage: its job must learn of it
            _log.exception("stage_broke")
            broken = InternalError(
                f"Running the stage failed unexpectedly: {type(error).__name__}.",
                remedy=f"Look at the log of {self._worker}.",
            )
            return self._outcome(task, failure=describe_error(broken), retryable=True)
        finally:
            await events.close()
        failure = result.failure if _has(result, "failure") else None
        cached = bool(_has(result, "execution") and result.execution.cached)
        return self._outcome(task, result=reference, failure=failure, cached=cached)

    async def _keep(self, data: bytes) -> artifact_pb2.ArtifactRef:
        for attempt in range(_STORE_TRIES):
            try:
                return await self._store.put_bytes(data, RESULT_MEDIA_TYPE)
            except BoardliftError as error:
                if not error.retryable or attempt == _STORE_TRIES - 1:
                    raise
                _log.info("store_unreachable", error=error.message)
                await asyncio.sleep(min(5.0, 0.25 * 2**attempt))
        raise InternalError("The artifact store could not be reached.")

    def _outcome(self, task: queue_pb2.StageTask, **fields: Any) -> queue_pb2.StageOutcome:
        return queue_pb2.StageOutcome(
            job_id=task.job_id,
            stage=task.stage,
            variant=task.variant,
            attempt=task.attempt,
            worker=self._worker,
            **fields,
        )

    async def _on_stop(self, message: Msg) -> None:
        try:
            stop = queue_pb2.StopStage.FromString(message.data)
        except DecodeError:
            _log.warning("stop_unreadable")
            return
        for key, task in list(self._running.items()):
            if is_meant(stop, task) and key not in self._stops:  # again if it comes again: the first may have failed
                self._stopped.add(key)
                _log.info("stopping_stage", job=task.job_id, stage=task.stage, variant=task.variant)
                self._stops[key] = asyncio.create_task(self._tell(key, task))

    async def _tell(self, key: int, task: queue_pb2.StageTask) -> None:
        """Have one attempt end; a service that is slow to answer must not hold up the stops of others."""
        try:
            await self._runner.stop(task)
        except Exception:  # noqa: BLE001 - the outermost boundary of this task: the next stop tries again
            _log.exception("stop_failed", job=task.job_id, stage=task.stage, variant=task.variant)
        finally:
            del self._stops[key]


def is_meant(stop: queue_pb2.StopStage, task: queue_pb2.StageTask) -> bool:
    """Tell whether a stop is about this attempt."""
    if stop.job_id != task.job_id:
        return False
    if not stop.stage:
        return True
    same = (stop.stage, stop.variant) == (task.stage, task.variant)
    return same and (stop.attempt == 0 or task.attempt <= stop.attempt)


def describe_error(error: BoardliftError) -> toolchain_pb2.StageFailure:
    """Turn the error of a call into a stage failure for the job's record."""
    evidence = [f"{name}: {value}"[:500] for name, value in sorted(error.metadata.items())][:8]
    user_fault = error.code is grpc.StatusCode.INVALID_ARGUMENT
    return toolchain_pb2.StageFailure(
        code=error.reason, message=error.message, remedy=error.remedy, evidence=evidence, user_fault=user_fault
    )


def _has(result: Any, field: str) -> bool:
    return field in result.DESCRIPTOR.fields_by_name and bool(result.HasField(field))
