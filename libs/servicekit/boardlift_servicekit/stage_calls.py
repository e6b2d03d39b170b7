"""Call the gRPC service that runs a stage, follow its events, and stop it when asked.

A broken stream is repaired by calling again: stage executions are content-addressed, so the same request attaches to
the running execution or gets the stored result.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import grpc
import structlog
from boardlift.errors import (
    BoardliftError,
    CancelledError,
    DeadlineError,
    InternalError,
    UnavailableError,
    from_rpc_error,
)
from boardlift.v1 import (
    board_agent_pb2_grpc,
    compiler_pb2_grpc,
    queue_pb2,
    toolchain_pb2,
    toolchain_pb2_grpc,
    transform_pb2_grpc,
)
from google.protobuf.message import Message

Emit = Callable[[Any], Awaitable[None]]
"""Receives `Progress` and `LogLine` messages of a running stage."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Call:
    stub: Callable[[Any], Any]
    method: str
    streaming: bool = True


CALLS: Final[Mapping[str, _Call]] = {
    "ingest": _Call(transform_pb2_grpc.TransformServiceStub, "PrepareDataset", streaming=False),
    "transform": _Call(transform_pb2_grpc.TransformServiceStub, "TransformModel"),
    "check": _Call(compiler_pb2_grpc.CompilerServiceStub, "CheckModel"),
    "compile": _Call(compiler_pb2_grpc.CompilerServiceStub, "CompileModel"),
    "simulate": _Call(compiler_pb2_grpc.CompilerServiceStub, "SimulateModel"),
    "board": _Call(board_agent_pb2_grpc.BoardAgentServiceStub, "RunModel"),
    "diagnose": _Call(board_agent_pb2_grpc.BoardAgentServiceStub, "DiagnoseModel"),
}
"""Which call runs which stage."""


class StageRunner(Protocol):
    """Something that runs stages."""

    async def run(self, task: queue_pb2.StageTask, emit: Emit) -> Message:
        """Run one attempt and return the stage's whole result.

        Raises:
            BoardliftError: The stage could not be run.
        """
        ...

    async def stop(self, task: queue_pb2.StageTask) -> None:
        """Make a running attempt end soon by raising `CancelledError`."""
        ...


def execution_id(task: queue_pb2.StageTask) -> str:
    """The name under which the service knows this attempt: job/stage/variant/attempt."""
    return f"{task.job_id}/{task.stage}/{task.variant}/{task.attempt}"


class GrpcRunner:
    """Runs stages by calling a service over a channel."""

    def __init__(self, channel: Any, *, patience_s: float = 60.0, metadata: tuple[tuple[str, str], ...] = ()) -> None:
        """Call over `channel` (grpc.aio).

        Args:
            channel: Channel to the service; this class does not close it.
            patience_s: Seconds for which an unreachable service is waited for before the attempt counts as failed.
            metadata: Sent with every call.
        """
        self._channel = channel
        self._patience_s = patience_s
        self._metadata = metadata
        self._server = toolchain_pb2_grpc.ServerServiceStub(channel)
        self._active: Counter[str] = Counter()
        self._calls: dict[str, set[Any]] = {}
        self._stopped: set[str] = set()

    async def slots(self) -> int:
        """Ask the service how many stages it runs at the same time; at least 1.

        Raises:
            BoardliftError: It does not answer.
        """
        try:
            info = await self._server.GetServerInfo(
                toolchain_pb2.GetServerInfoRequest(), timeout=10, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error
        return max(1, int(info.slots))

    async def run(self, task: queue_pb2.StageTask, emit: Emit) -> Message:
        """Run one attempt; calls again while the service is unreachable and patience lasts."""
        name = execution_id(task)
        lost_since: float | None = None
        with self.begun(task):
            while True:
                if name in self._stopped:
                    raise CancelledError("The stage was stopped.")
                began = time.monotonic()
                try:
                    return await self._call(task, name, emit)
                except UnavailableError as error:
                    now = time.monotonic()
                    # A call that lived for a while was a working service: patience starts anew.
                    lost_since = now if lost_since is None or now - began > self._patience_s else lost_since
                    if now - lost_since >= self._patience_s:
                        raise
                    _log.info("service_unreachable", execution=name, error=error.message)
                    await asyncio.sleep(0.5)

    @contextlib.contextmanager
    def begun(self, task: queue_pb2.StageTask) -> Iterator[None]:
        """Have stops of this attempt count from now on to the end of the body: `run` in it then makes no call."""
        name = execution_id(task)
        self._active[name] += 1  # an attempt that was delivered twice runs twice here, and is one execution there
        try:
            yield
        finally:
            self._active[name] -= 1
            if not self._active[name]:
                del self._active[name]
                self._stopped.discard(name)

    async def stop(self, task: queue_pb2.StageTask) -> None:
        """Have the service kill the stage's tools at once, then leave the call; one that has ended leaves no trace."""
        name = execution_id(task)
        if name in self._active:
            self._stopped.add(name)
        try:
            request = toolchain_pb2.CancelExecutionRequest(execution_id=name)
            await self._server.CancelExecution(request, timeout=3, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            _log.info("cancel_not_confirmed", execution=name, code=error.code().name)
        for call in self._calls.get(name, set()).copy():
            call.cancel()

    async def _call(self, task: queue_pb2.StageTask, name: str, emit: Emit) -> Message:
        call = CALLS[task.stage]
        method = getattr(call.stub(self._channel), call.method)
        metadata = (("x-execution-id", name), ("x-job-id", task.job_id), ("x-stage", task.stage), *self._metadata)
        running = method(getattr(task, task.stage), timeout=_remaining_s(task), metadata=metadata)
        self._calls.setdefault(name, set()).add(running)
        try:
            if not call.streaming:
                return await running  # type: ignore[no-any-return]
            async for event in running:
                kind = event.WhichOneof("event")
                if kind == "result":
                    running.cancel()
                    return event.result  # type: ignore[no-any-return]
                if kind:
                    await emit(getattr(event, kind))
        except grpc.aio.AioRpcError as error:
            if name in self._stopped:
                raise CancelledError("The stage was stopped.") from error
            raise from_rpc_error(error) from error
        except asyncio.CancelledError:
            if name in self._stopped:
                raise CancelledError("The stage was stopped.") from None
            running.cancel()
            raise
        finally:
            self._calls[name].discard(running)
            if not self._calls[name]:
                del self._calls[name]
        if name in self._stopped:
            raise CancelledError("The stage was stopped.")
        raise InternalError(
            "The service ended its stream without a result.",
            reason="NO_RESULT",
            remedy="Run it again; if it repeats, the log of the service says why.",
        )


def _remaining_s(task: queue_pb2.StageTask) -> float:
    """Seconds until the job's own end.

    Raises:
        DeadlineError: It has passed.
    """
    if not task.HasField("deadline_time"):
        return 4 * 3600.0
    remaining = task.deadline_time.ToNanoseconds() / 1e9 - time.time()
    if remaining <= 0:
        raise DeadlineError(
            "The job's time is over.",
            reason="JOB_DEADLINE_EXCEEDED",
            remedy="Give the job more time (`--limit`), or fewer variants.",
        )
    return remaining


def is_retryable(error: BoardliftError) -> bool:
    """Tell whether another attempt may help: faults of the machinery, never of the user."""
    return error.retryable or error.code in (
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    )
