"""Single flight by digest: equal requests share one run, and a finished run is never done again.

A stage's request is reduced to a key (inputs, tool versions, stage version). The first caller starts the work; later
ones attach and see its progress; when it is done the result is stored and answers every further call. Work stops when
its last caller has left: at once when the caller says so (`cancel`), else after a grace period, so that a broken stream
can come back. Results that blame the machinery are not stored. A call that asks only for what is stored
(`x-only-stored`) never starts anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog
from boardlift.errors import CancelledError, NotFoundError
from boardlift.v1 import toolchain_pb2
from google.protobuf.message import Message

from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.interceptors import caller_is_admin, current_principal, wants_only_stored
from boardlift_servicekit.reader import Reader
from boardlift_servicekit.stored_results import StoredResults, storable

_LOG = structlog.get_logger()
_KEPT_LINES = 2000
_RUN_IT = "Send the request again to run it."
R = TypeVar("R", bound=Message)
Event = toolchain_pb2.Progress | toolchain_pb2.LogLine | Message


def request_key(stage: str, version: str, request: Message, *more: str) -> str:
    """Digest of a stage's inputs: name, version of our code, request, and whatever else decides (tool versions).

    The request is serialised deterministically; equal messages made by the same protobuf runtime give equal bytes.
    """
    digest = hashlib.sha256()
    for part in (stage, version, *more):
        digest.update(part.encode() + b"\0")
    digest.update(request.SerializeToString(deterministic=True))
    return digest.hexdigest()


def code_version(*folders: Path) -> str:
    """Digest of the Python sources below some folders, tests left out: a stage version nobody can forget to raise.

    An upgraded service never answers with what its predecessor stored.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if path.name.endswith("_test.py") or path.name == "conftest.py" or "__pycache__" in path.parts:
                continue
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class Emitter:
    """What the work uses to tell how far it is."""

    def __init__(self, publish: Callable[[Event], None]) -> None:
        """Send events to `publish`."""
        self._publish = publish
        self._start = time.monotonic()

    def progress(
        self, step: str, fraction: float, done: int = 0, total: int = 0, remaining_s: float | None = None
    ) -> None:
        """Report the current step; `fraction` is the share of the whole stage, 0 to 1."""
        event = toolchain_pb2.Progress(step=step, fraction=min(max(fraction, 0.0), 1.0), done=done, total=total)
        event.elapsed_duration.FromMilliseconds(int((time.monotonic() - self._start) * 1000))
        if remaining_s is not None:
            event.remaining_duration.FromMilliseconds(int(max(remaining_s, 0.0) * 1000))
        self._publish(event)

    def log(self, text: str, source: str = "stdout") -> None:
        """Pass on one line of a tool."""
        self._publish(toolchain_pb2.LogLine(text=text[:4096], source=source))


Work = Callable[[Emitter], Awaitable[R]]


@dataclass
class _Execution:
    """A run in progress with those who wait for it."""

    key: str
    begun: float = field(default_factory=time.time)
    task: asyncio.Task[Message] | None = None
    lines: list[Event] = field(default_factory=list)
    progress: Event | None = None
    callers: set[Reader] = field(default_factory=set)
    grace: asyncio.TimerHandle | None = None
    stopping: bool = False
    """Its work has been told to end; a caller that comes now needs a run of its own."""

    def stop(self) -> None:
        """Have the work end."""
        self.stopping = True
        if self.task is not None:
            self.task.cancel()

    def publish(self, event: Event) -> list[Reader]:
        """Hand an event to all callers; return those that are too slow for it."""
        if isinstance(event, toolchain_pb2.Progress):
            self.progress = event
        else:
            self.lines.append(event)
            del self.lines[:-_KEPT_LINES]
        return [caller for caller in self.callers if not caller.put(event)]


class Executions(Generic[R]):
    """The running and finished executions of one service."""

    def __init__(self, folder: Path, store: ArtifactStore, *, slots: int, grace_s: float = 30.0) -> None:
        """Keep results in `folder`; run at most `slots` at a time."""
        self._results = StoredResults(folder, store)
        self._slots = asyncio.Semaphore(slots)
        self._grace_s = grace_s
        self._running: dict[str, _Execution] = {}
        self._named: dict[tuple[str, str], list[tuple[_Execution, Reader]]] = {}
        self.slots = slots
        self.busy = 0

    async def run(self, key: str, execution_id: str, result_type: type[R], work: Work[R]) -> AsyncIterator[Event]:
        """Yield progress and log events, then the result.

        Args:
            key: Digest from `request_key`; equal keys share one run.
            execution_id: The caller's own name for this call, for `cancel`; may be empty.
            result_type: Message class of the result; has a field `execution`.
            work: Makes the result. It is cancelled when nobody waits any more.

        Raises:
            CancelledError: Somebody cancelled this execution.
            NotFoundError: RESULT_NOT_STORED, when the caller wants a stored result only.
            UnavailableError: READER_TOO_SLOW, when the caller takes events too slowly; it may call again.
        """
        while True:
            stored = await self._results.load(key, result_type)
            if stored is not None:
                yield stored
                return
            if wants_only_stored():
                raise NotFoundError("No result of this request is stored.", reason="RESULT_NOT_STORED", remedy=_RUN_IT)
            stopping = self._stopping(key)
            if stopping is None:
                break
            await asyncio.wait({stopping})  # who comes now has not asked for the stop: a new run, once this one is gone
        execution = self._attach(key, work)
        missed = [*execution.lines, *([execution.progress] if execution.progress else [])]
        caller = Reader(current_principal(), missed)
        execution.callers.add(caller)
        name = (caller.principal, execution_id)
        if execution_id:
            self._named.setdefault(name, []).append((execution, caller))
        try:
            async for item in caller.events():
                yield item
            task = execution.task
            if task is None or not task.done() or task.cancelled():  # not done: it goes on for others, or dies slowly
                raise CancelledError("The execution was stopped.", reason="EXECUTION_CANCELLED", remedy=_RUN_IT)
            yield task.result()
        finally:
            self._forget(name, caller)
            self._leave(execution, caller, self._grace_s)

    async def is_stored(self, key: str, result_type: type[R]) -> bool:
        """Tell whether `run` would answer with a stored result."""
        return await self._results.load(key, result_type) is not None

    async def cancel(self, execution_id: str) -> bool:
        """Let a caller leave without the grace period; True when that stopped the work (it has ended on return).

        All calls of this name leave: one that came again may have left a broken stream behind, not noticed yet.
        Only the principal who named an execution can cancel it, or an administrator: to all others there is none.
        """
        calls = self._named.get((current_principal(), execution_id))
        if calls is None and caller_is_admin():
            calls = next((item for (_, name), item in self._named.items() if name == execution_id), None)
        leaving = [(run, caller) for run, caller in calls or () if run.task is not None and not run.task.done()]
        for run, caller in leaving:
            run.callers.discard(caller)
        stopped = {run.task: run for run, _ in leaving if not run.callers and run.task is not None}
        for run in stopped.values():
            run.stop()
        if stopped:
            await asyncio.wait(stopped, timeout=10)
        for _, caller in leaving:
            caller.close()
        return bool(stopped)

    @property
    def running_since(self) -> float:
        """When the oldest running execution came, in seconds since the epoch; infinity when none runs."""
        return min([execution.begun for execution in list(self._running.values())], default=math.inf)

    async def close(self) -> None:
        """Stop everything that runs."""
        tasks = [e.task for e in self._running.values() if e.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, name: tuple[str, str], caller: Reader) -> None:
        left = [item for item in self._named.pop(name, ()) if item[1] is not caller]
        if left:
            self._named[name] = left

    def _stopping(self, key: str) -> asyncio.Task[Message] | None:
        execution = self._running.get(key)
        return execution.task if execution is not None and execution.stopping else None

    def _attach(self, key: str, work: Work[R]) -> _Execution:
        execution = self._running.get(key)
        if execution is None:
            execution = self._running[key] = _Execution(key)
            execution.task = asyncio.create_task(self._perform(execution, work))
            execution.task.add_done_callback(lambda _task, e=execution: self._finish(e))  # type: ignore[misc]
        if execution.grace:
            execution.grace.cancel()
            execution.grace = None
        return execution

    async def _perform(self, execution: _Execution, work: Work[R]) -> Message:
        emitter = Emitter(lambda event: self._publish(execution, event))
        if self._slots.locked():
            emitter.progress("waiting for a free slot", 0.0)
        async with self._slots:
            self.busy += 1
            start = time.time()
            try:
                result = await work(emitter)
            finally:
                self.busy -= 1
        info: toolchain_pb2.ExecutionInfo = result.execution  # type: ignore[attr-defined]
        info.digest = execution.key
        info.start_time.FromMilliseconds(int(start * 1000))
        info.end_time.FromMilliseconds(int(time.time() * 1000))
        if storable(result):
            await asyncio.to_thread(self._results.save, execution.key, result)
        _LOG.info("run_ended", execution=execution.key[:12], seconds=round(time.time() - start, 3))
        return result

    def _publish(self, execution: _Execution, event: Event) -> None:
        for caller in execution.publish(event):
            _LOG.warning("a caller reads too slowly and is sent away", execution=execution.key[:12])
            self._leave(execution, caller, self._grace_s)

    def _finish(self, execution: _Execution) -> None:
        self._running.pop(execution.key, None)
        for caller in execution.callers:
            caller.close()

    def _leave(self, execution: _Execution, caller: Reader, grace_s: float) -> None:
        if caller not in execution.callers and execution.grace:
            return  # it was sent away before, and the grace runs since then
        execution.callers.discard(caller)
        task = execution.task
        if execution.callers or task is None:
            return
        if task.done():
            if not task.cancelled():
                task.exception()  # a failure that no caller was left to see has been logged by the interceptor
            return
        _LOG.info("nobody waits any more", execution=execution.key[:12], grace_s=grace_s)
        execution.grace = asyncio.get_running_loop().call_later(grace_s, execution.stop)


async def as_responses(response_type: type[Any], events: AsyncIterator[Event]) -> AsyncIterator[Any]:
    """Number events and wrap them in a stage's response message (`sequence`, `progress | log | result`)."""
    sequence = 0
    async for event in events:
        sequence += 1
        if isinstance(event, toolchain_pb2.Progress):
            yield response_type(sequence=sequence, progress=event)
        elif isinstance(event, toolchain_pb2.LogLine):
            yield response_type(sequence=sequence, log=event)
        else:
            yield response_type(sequence=sequence, result=event)


def execution_id(context: Any) -> str:
    """The caller's name for a call, from the metadata `x-execution-id`; empty when it sent none."""
    for name, value in context.invocation_metadata() or ():
        if name == "x-execution-id":
            return str(value)[:200]
    return ""
