"""Start ``hb_mapper`` once, follow it, and say how it ended.

Two ways to start it: a plain subprocess, or a fork of a process that has imported the tool already
(:mod:`boardlift_compiler.warm_start`). Both give the same :class:`MapperRun`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardlift_servicekit.tool import ToolCommand, ToolResult, run_tool

from boardlift_compiler.count_oom_kills import count_oom_kills
from boardlift_compiler.explain_failure import RunEnd
from boardlift_compiler.parse_log import EPHEMERAL, LogFacts, LogParser
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.scrub_paths import Scrubber
from boardlift_compiler.toolchain import Toolchain, tool_environment
from boardlift_compiler.track_progress import ProgressTracker
from boardlift_compiler.write_config import OUTPUT_FOLDER, PREFIX

CONSOLE = "console.log"
FULL_DISK_BYTES = 1 << 20
Launcher = Callable[[ToolCommand, Callable[[str, str], None]], Awaitable[ToolResult]]


@dataclass(frozen=True)
class Limits:
    """What one run may use."""

    timeout_s: float = 7200.0
    """Time after which it is stopped."""
    silence_s: float = 600.0
    """Time without output, outside the compiler, after which it counts as hanging."""
    compile_silence_s: float = 7200.0
    """The same inside the vendor's compiler, which prints nothing for minutes on large models."""
    memory_bytes: int = 0
    """Address space per process; 0 is none."""
    file_bytes: int = 0
    """Largest file; 0 is none."""


@dataclass(frozen=True)
class Hooks:
    """Where a run reports to; called on the event loop."""

    on_line: Callable[[str], None] = lambda text: None
    """A line of the tool, progress bars left out."""
    on_progress: Callable[[ProgressTracker, float], None] = lambda tracker, now: None
    """Progress changed; the clock is ``time.monotonic``."""
    launcher: Launcher = run_tool
    """How the program is started."""


@dataclass(frozen=True)
class MapperRun:
    """How a run ended and what its log says."""

    end: RunEnd
    """Exit code, files, our own reasons to stop it."""
    facts: LogFacts
    """What the log says."""
    console: Path
    """The whole output."""
    peak_memory_bytes: int = 0
    """Resident memory of the largest process."""
    cpu_s: float = 0.0
    """Processor time."""
    wall_s: float = 0.0
    """Wall time."""


class _Follower:
    """Feeds lines to parser, tracker and hooks; knows how long it has been quiet in which step."""

    def __init__(self, hooks: Hooks, tracker: ProgressTracker, scrubber: Scrubber) -> None:
        self.scrubber = scrubber
        self.parser = LogParser()
        self.tracker = tracker
        self.hooks = hooks
        self.last = time.monotonic()
        tracker.step_started = self.last

    def feed(self, source: str, text: str) -> None:
        now = self.last = time.monotonic()
        for line in self.parser.feed(self.scrubber.line(text)):
            if self.tracker.feed(line.text, now):
                self.hooks.on_progress(self.tracker, now)
            if not EPHEMERAL.search(line.text):
                self.hooks.on_line(line.text)

    def quiet_limit(self, limits: Limits) -> float:
        return limits.compile_silence_s if self.tracker.step == "compile" else limits.silence_s


async def run_mapper(
    toolchain: Toolchain,
    arguments: Sequence[str],
    folder: RunFolder,
    *,
    limits: Limits,
    hooks: Hooks,
    tracker: ProgressTracker,
) -> MapperRun:
    """Run ``hb_mapper`` with these arguments in the folder.

    Cancelling this coroutine stops the whole process group, the vendor's compiler included.
    """
    scrubber = Scrubber(folder.path, toolchain.root)
    follower = _Follower(hooks, tracker, scrubber)
    console = folder.path / CONSOLE
    command = ToolCommand(
        [toolchain.program("hb_mapper"), *arguments],
        cwd=folder.path,
        environment=tool_environment(toolchain.root, folder),
        timeout_s=limits.timeout_s,
        memory_bytes=limits.memory_bytes,
        file_bytes=limits.file_bytes,
        log_path=console,
    )
    kills_before = count_oom_kills()
    task = asyncio.ensure_future(hooks.launcher(command, follower.feed))
    silent_s = await _watch(task, follower, limits)
    if console.is_file():
        scrubber.file(console)
    if silent_s:
        end = RunEnd(137, silent_s=silent_s)
        return MapperRun(end, follower.parser.facts, console, wall_s=silent_s)
    result = task.result()
    end = RunEnd(
        result.exit_code,
        timed_out_s=limits.timeout_s if result.timed_out else 0.0,
        silent_s=limits.silence_s if result.silent else 0.0,
        wrote_model=(folder.path / OUTPUT_FOLDER / f"{PREFIX}.bin").is_file(),
        oom_killed=count_oom_kills() > kills_before,
        disk_full=folder.free_bytes() < FULL_DISK_BYTES,
    )
    return MapperRun(end, follower.parser.facts, console, result.peak_memory_bytes, result.cpu_s, result.duration_s)


async def _watch(task: asyncio.Future[ToolResult], follower: _Follower, limits: Limits) -> float:
    """Wait for the run; stop it when it is quiet for too long. Returns the quiet seconds then, else 0."""
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=1.0)
            now = time.monotonic()
            if done:
                return 0.0
            quiet = now - follower.last
            if quiet >= follower.quiet_limit(limits):
                task.cancel()
                await asyncio.wait({task})
                return quiet
            follower.hooks.on_progress(follower.tracker, now)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
