"""Start the tool by forking a process that has imported it already: about a second less per run.

The parent is ``toolchain_side/fork_server.py`` in the toolchain's own interpreter. Every run is isolated as with a
plain start: own process group, folder, environment and limits. When the parent cannot be started or dies, runs fall
back to a plain start; it is replaced after MAX_RUNS.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from boardlift_servicekit.tool import Capture, ToolCommand, ToolResult, run_tool

from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_vendor import toolchain_side
from boardlift_compiler.toolchain import Toolchain, tool_environment

_LOG = structlog.get_logger()
MAX_RUNS = 200
CANNOT_FORK = 250
START_SECONDS = 60.0
FORK_SECONDS = 10.0
OnLine = Callable[[str, str], None]
LOST: dict[str, float] = {"exit_code": 137, "signal": int(signal.SIGKILL)}
"""Last message of a run whose parent is gone."""


@dataclass
class _Parent:
    """A running fork server."""

    process: asyncio.subprocess.Process
    belongings: contextlib.ExitStack
    """Its run folder and our end of the socket; closed when it has ended."""
    channel: socket.socket
    waiting: dict[int, asyncio.Queue[dict[str, float]]] = field(default_factory=dict)
    reader: asyncio.Task[None] | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    runs: int = 0
    retired: bool = False
    """Replaced while runs of it went on: the last of them ends it."""

    @property
    def alive(self) -> bool:
        return self.process.returncode is None and self.reader is not None and not self.reader.done()


class _NotTaken(Exception):
    """The parent died a moment ago: nothing was begun."""


class WarmStart:
    """Launches the tool; use :meth:`launch` wherever ``run_tool`` fits."""

    def __init__(self, toolchain: Toolchain, work_root: Path) -> None:
        """Prepare; the parent starts with the first run and has a run folder of its own under ``work_root``."""
        self._toolchain = toolchain
        self._root = work_root
        self._parent: _Parent | None = None
        self._lock = asyncio.Lock()
        self._next = 0
        self._unforkable = False
        self.warm_runs = 0
        self.plain_runs = 0

    async def launch(self, command: ToolCommand, on_line: OnLine | None = None) -> ToolResult:
        """Run ``hb_mapper`` or one of our programs of the toolchain's side; others get a plain start.

        So does everything where there is no parent.
        """
        if self._unforkable or not (_is_mapper(command) or _is_script(command)):
            return await run_tool(command, on_line)
        parent = await self._ensure_parent()
        if parent is None:
            self.plain_runs += 1
            return await run_tool(command, on_line)
        try:
            result = await self._run(parent, command, on_line)
        except _NotTaken as error:
            _LOG.warning("the warm start's parent takes nothing, a plain process instead", error=str(error)[:200])
            self.plain_runs += 1
            return await run_tool(command, on_line)
        self.warm_runs += 1
        if result.exit_code == CANNOT_FORK:
            _LOG.warning("this toolchain cannot be forked, plain processes from now on")
            self._unforkable = True
            return await run_tool(command, on_line)
        return result

    async def close(self) -> None:
        """End the parent and everything it started."""
        if self._parent is not None:
            await _end(self._parent)
            self._parent = None

    async def _ensure_parent(self) -> _Parent | None:
        async with self._lock:
            parent = self._parent
            if parent is not None and parent.alive and parent.runs < MAX_RUNS:
                return parent
            if parent is not None and parent.waiting:
                parent.retired = True
            elif parent is not None:
                await _end(parent)
            try:
                self._parent = await self._start()
            except (OSError, TimeoutError, asyncio.TimeoutError) as error:
                _LOG.warning("no warm start, plain processes instead", error=str(error)[:200])
                self._parent = None
            return self._parent

    async def _start(self) -> _Parent:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with contextlib.ExitStack() as undo:  # until the parent is there, whatever fails takes socket and folder along
            undo.callback(ours.close)
            with theirs:
                place = undo.enter_context(run_folder(self._root))
                process = await asyncio.create_subprocess_exec(
                    str(self._toolchain.python),
                    str(toolchain_side("fork_server.py")),
                    str(theirs.fileno()),
                    cwd=place.path,
                    env=tool_environment(self._toolchain.root, place),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            belongings = undo.pop_all()
        parent = _Parent(process, belongings, ours)
        parent.reader = asyncio.create_task(_read_messages(parent))
        try:
            await asyncio.wait_for(parent.ready.wait(), START_SECONDS)
        except BaseException:
            await _end(parent)
            raise
        if not parent.alive:
            await _end(parent)
            raise OSError(f"fork server ended with {process.returncode}")
        return parent

    async def _run(self, parent: _Parent, command: ToolCommand, on_line: OnLine | None) -> ToolResult:
        capture = Capture(command.log_path, on_line)  # first: it may fail, and nothing is to be undone then
        self._next += 1
        parent.runs += 1
        number, queue = self._next, asyncio.Queue[dict[str, float]]()
        parent.waiting[number] = queue
        read_end, write_end = os.pipe()
        started = time.monotonic()
        request = {
            "id": number,
            "argv": list(command.argv),
            "script": _is_script(command),
            "cwd": str(command.cwd),
            "env": dict(command.environment),
            "limits": {"memory_bytes": command.memory_bytes, "file_bytes": command.file_bytes},
        }
        try:
            socket.send_fds(parent.channel, [json.dumps(request).encode()], [write_end])
        except OSError as error:
            os.close(read_end)
            capture.close()
            del parent.waiting[number]
            raise _NotTaken(str(error)) from error
        finally:
            os.close(write_end)
        pid = 0
        reading = asyncio.create_task(_read_pipe(capture, read_end))
        timed_out = False
        try:
            message = await queue.get()
            pid = int(message.get("pid", 0))
            if pid:  # without one the parent died before it forked, and that was its last message
                try:
                    message = await asyncio.wait_for(queue.get(), command.timeout_s)
                except asyncio.TimeoutError:
                    timed_out = True
                    message = await _stop(pid, queue, command.kill_after_s)
                if message is LOST:
                    _kill(pid)  # the kernel ended the run with its parent; what the run had started is still there
            await asyncio.wait({reading}, timeout=1.0)
        except asyncio.CancelledError:
            await asyncio.shield(_leave(pid, queue, command.kill_after_s))
            raise
        finally:
            parent.waiting.pop(number, None)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            capture.close()
            if parent.retired and not parent.waiting:
                await asyncio.shield(_end(parent))
        return ToolResult(
            exit_code=int(message.get("exit_code", 137)),
            signal=int(message.get("signal", signal.SIGKILL)),
            timed_out=timed_out,
            silent=False,
            duration_s=time.monotonic() - started,
            cpu_s=float(message.get("cpu_s", 0.0)),
            peak_memory_bytes=int(message.get("peak_memory_bytes", 0)),
            last_lines=tuple(capture.last),
        )


def _is_mapper(command: ToolCommand) -> bool:
    return Path(command.argv[0]).name == "hb_mapper"


def _is_script(command: ToolCommand) -> bool:
    """Tell our own programs, which begin by importing what the parent has, from all others."""
    ours = toolchain_side("fork_server.py").parent
    return any(Path(argument).parent == ours for argument in command.argv[1:2])


async def _stop(pid: int, queue: asyncio.Queue[dict[str, float]], kill_after_s: float) -> dict[str, float]:
    """TERM the group, wait, KILL what is left; returns the run's last message."""
    for number, patience in ((signal.SIGTERM, kill_after_s), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        try:
            message = await asyncio.wait_for(queue.get(), patience)
        except asyncio.TimeoutError:
            continue
        _kill(pid)
        return message
    return LOST


def _kill(pid: int) -> None:
    """Kill what is left of a run's group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


async def _leave(pid: int, queue: asyncio.Queue[dict[str, float]], kill_after_s: float) -> None:
    """Stop a run that nobody waits for any more, also one that is only being forked: it would go on alone."""
    if not pid:
        with contextlib.suppress(asyncio.TimeoutError):
            pid = int((await asyncio.wait_for(queue.get(), FORK_SECONDS)).get("pid", 0))
    if pid:
        await _stop(pid, queue, kill_after_s)


async def _read_messages(parent: _Parent) -> None:
    loop = asyncio.get_running_loop()
    try:
        while data := await loop.sock_recv(parent.channel, 65536):
            message = json.loads(data)
            if message.get("ready"):
                parent.ready.set()
            elif message.get("id") in parent.waiting:
                parent.waiting[message["id"]].put_nowait(message)
    except OSError:
        _LOG.warning("the warm start's parent is gone")
    finally:
        parent.ready.set()
        for queue in parent.waiting.values():
            queue.put_nowait(LOST)


async def _end(parent: _Parent) -> None:
    parent.channel.close()
    if parent.reader is not None:
        parent.reader.cancel()
        await asyncio.gather(parent.reader, return_exceptions=True)
    try:
        await asyncio.wait_for(parent.process.wait(), 5.0)
    except asyncio.TimeoutError:
        parent.process.kill()
        await parent.process.wait()
    parent.belongings.close()


async def _read_pipe(capture: Capture, descriptor: int) -> None:
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb")
    )
    try:
        await capture.read("stdout", stream)
    finally:
        transport.close()
