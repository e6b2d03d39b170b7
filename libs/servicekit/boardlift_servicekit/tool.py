"""Run an external tool: own process group, clean environment, deadline, TERM-wait-KILL, output as it comes.

The tool runs under `guard.py`, so it also dies when this process is killed. Nothing goes through a shell.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boardlift.errors import InternalError, PreconditionError

_GUARD = Path(__file__).with_name("guard.py")
_MAX_LINE = 8192
LineHandler = Callable[[str, str], None]
"""Called with (source "stdout" or "stderr", text without line end); carriage returns end lines too."""


@dataclass(frozen=True)
class ToolCommand:
    """What to run and within which limits."""

    argv: Sequence[str]
    """Program and arguments; the program is found on `environment["PATH"]` or is an absolute path."""
    cwd: Path
    """Work folder, private to this run."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of the tool; nothing is inherited."""
    timeout_s: float = 3600.0
    """Time after which the group is stopped."""
    kill_after_s: float = 2.0
    """Time between TERM and KILL."""
    silence_s: float = 0.0
    """Time without any output after which the tool counts as hanging; 0 never."""
    memory_bytes: int = 0
    """Address space limit per process; 0 is none."""
    file_bytes: int = 0
    """Largest file it may write; 0 is none."""
    log_path: Path | None = None
    """File that receives everything it prints, as it comes."""


@dataclass(frozen=True)
class ToolResult:
    """How the tool ended."""

    exit_code: int
    """Its exit code; 128 + n after signal n."""
    signal: int
    """Signal that ended it; 0 when it ended by itself."""
    timed_out: bool
    """True when the deadline stopped it."""
    silent: bool
    """True when it was stopped for printing nothing."""
    duration_s: float
    """Wall time."""
    cpu_s: float
    """Processor time of the tool and what it waited for."""
    peak_memory_bytes: int
    """Resident memory of its largest process."""
    last_lines: tuple[str, ...]
    """The last 50 lines it printed."""


async def run_tool(command: ToolCommand, on_line: LineHandler | None = None) -> ToolResult:
    """Run a tool to its end, or stop its whole group when this coroutine is cancelled or time runs out.

    Raises:
        PreconditionError: TOOL_MISSING when the program can't be started.
    """
    program = _resolve(command)
    capture = Capture(command.log_path, on_line)
    start = time.monotonic()
    try:
        process, life_write, report_read = await _start(program, command)
    except BaseException:
        capture.close()
        raise
    try:
        timed_out, silent = await _supervise(process, command, capture)
    finally:
        await _stop_group(process, command.kill_after_s)
        capture.close()
        os.close(life_write)
        report = _read_report(report_read)
    if "start_error" in report:
        raise _missing(str(command.argv[0]))
    return ToolResult(
        exit_code=int(report.get("exit_code", 137)),
        signal=int(report.get("signal", signal.SIGKILL)),
        timed_out=timed_out,
        silent=silent,
        duration_s=time.monotonic() - start,
        cpu_s=float(report.get("cpu_s", 0.0)),
        peak_memory_bytes=int(report.get("peak_memory_bytes", 0)),
        last_lines=tuple(capture.last),
    )


async def _start(program: str, command: ToolCommand) -> tuple[asyncio.subprocess.Process, int, int]:
    """Start the guard; returns it with the ends of its life line and of its report that are ours to close."""
    limits = {k: v for k, v in (("memory_bytes", command.memory_bytes), ("file_bytes", command.file_bytes)) if v}
    life_read, life_write = os.pipe()
    report_read, report_write = os.pipe()
    arguments = [sys.executable, "-I", "-S", str(_GUARD), str(life_read), str(report_write), json.dumps(limits)]
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            program,
            *command.argv[1:],
            cwd=command.cwd,
            env=dict(command.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=(life_read, report_write),
        )
    except BaseException:
        os.close(life_write)
        os.close(report_read)
        raise
    finally:
        os.close(life_read)
        os.close(report_write)
    return process, life_write, report_read


async def _supervise(process: asyncio.subprocess.Process, command: ToolCommand, capture: Capture) -> tuple[bool, bool]:
    if process.stdout is None or process.stderr is None:
        raise InternalError("The tool was started without pipes.")
    readers = [
        asyncio.create_task(capture.read("stdout", process.stdout)),
        asyncio.create_task(capture.read("stderr", process.stderr)),
    ]
    waiter = asyncio.create_task(process.wait())
    deadline = time.monotonic() + command.timeout_s
    timed_out = silent = False
    try:
        while not waiter.done():
            now = time.monotonic()
            timed_out = now >= deadline
            silent = command.silence_s > 0 and now - capture.last_output >= command.silence_s
            if timed_out or silent:
                break
            pause = min(deadline - now, command.silence_s or 1.0, 1.0)
            await asyncio.wait({waiter}, timeout=max(pause, 0.01))
        if waiter.done():
            # A grandchild may hold the pipes open; what it prints after the tool's end is not the tool's.
            await asyncio.wait(readers, timeout=1.0)
    finally:
        for task in (*readers, waiter):
            task.cancel()
        await asyncio.gather(*readers, waiter, return_exceptions=True)
    return timed_out, silent


async def _stop_group(process: asyncio.subprocess.Process, kill_after_s: float) -> None:
    """TERM the group, wait, KILL what is left. Runs to its end even when the caller is cancelled again."""
    group = process.pid
    if process.returncode is None:
        _signal_group(group, signal.SIGTERM)
        waiter = asyncio.ensure_future(process.wait())
        await asyncio.wait({waiter}, timeout=kill_after_s)
        waiter.cancel()
    _signal_group(group, signal.SIGKILL)
    if process.returncode is None:
        await process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return  # everybody in the group has ended already


def _read_report(fd: int) -> dict[str, Any]:
    with os.fdopen(fd, "rb") as file:
        text = file.read()
    loaded: dict[str, Any] = json.loads(text) if text else {}
    return loaded


def _resolve(command: ToolCommand) -> str:
    name = str(command.argv[0])
    if "/" in name:
        candidates = [Path(name)]
    else:
        candidates = [Path(p) / name for p in command.environment.get("PATH", "").split(":") if p]
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise _missing(name)


def _missing(name: str) -> PreconditionError:
    return PreconditionError(
        f"The program {Path(name).name} can't be started.",
        reason="TOOL_MISSING",
        remedy="Install it, or set the path to it.",
        metadata={"tool": Path(name).name},
    )


class Capture:
    """Collects output by line, into the log file and to the handler."""

    last: deque[str]
    """The last 50 lines."""
    last_output: float
    """When anything came last, by `time.monotonic`."""

    def __init__(self, log_path: Path | None, on_line: LineHandler | None) -> None:
        """Open the log file, to be closed by `close`."""
        # Unbuffered: what was printed is on disk when the tool is killed, and closing can't fail.
        self._log = log_path.open("ab", buffering=0) if log_path else None
        self._on_line = on_line
        self.last = deque(maxlen=50)
        self.last_output = time.monotonic()

    async def read(self, source: str, stream: asyncio.StreamReader) -> None:
        """Take everything from a stream to its end; lines are cut at 8192 bytes."""
        pending = b""
        while chunk := await stream.read(65536):
            self.last_output = time.monotonic()
            self._write_log(chunk)
            *lines, pending = (pending + chunk.replace(b"\r", b"\n")).split(b"\n")
            for line in lines:
                self._emit(source, line)
            if len(pending) > _MAX_LINE:
                self._emit(source, pending)
                pending = b""
        if pending:
            self._emit(source, pending)

    def _emit(self, source: str, raw: bytes) -> None:
        text = raw[:_MAX_LINE].decode("utf-8", "replace").rstrip()
        if not text:
            return
        self.last.append(text)
        if self._on_line:
            self._on_line(source, text)

    def _write_log(self, chunk: bytes) -> None:
        if self._log is None:
            return
        try:
            self._log.write(chunk)
        except OSError as error:
            # The tool goes on without its log file; its lines say so, which is how a full disk is recognised.
            self._log.close()
            self._log = None
            self._emit("log", f"the log file can't be written: [Errno {error.errno}] {error.strerror}".encode())

    def close(self) -> None:
        """Close the log file."""
        if self._log:
            self._log.close()
