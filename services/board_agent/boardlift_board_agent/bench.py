"""What one piece of work on the board has at hand: artifacts, tool, board, log, a private folder that goes away."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from boardlift.errors import BoardliftError, ConflictError
from boardlift.v1 import board_agent_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.executions import Emitter

from boardlift_board_agent.board_tool import BoardTool
from boardlift_board_agent.failures import ModelRefused, ToolRun
from boardlift_board_agent.watch_board import BoardWatch, Snapshot


@dataclass(frozen=True)
class Limits:
    """Time limits of single tool runs."""

    infer_s: float = 120.0
    perf_s: float = 300.0


@dataclass(frozen=True)
class Parts:
    """What all work on this board shares."""

    store: ArtifactStore
    tool: BoardTool
    watch: BoardWatch
    work: Path
    """Folder for private folders."""
    limits: Limits


@dataclass
class Desk:
    """One piece of work."""

    store: ArtifactStore
    tool: BoardTool
    watch: BoardWatch
    emit: Emitter
    folder: Path
    """Private folder."""
    limits: Limits
    before: Snapshot
    """The board when the work began."""
    log: list[str] = field(default_factory=list)
    peak_memory_bytes: int = 0
    """Largest resident memory of a tool so far."""
    engines: set[str] = field(default_factory=set)
    """What a stand-in computed outputs with so far."""

    @property
    def simulated(self) -> bool:
        """The board is a stand-in."""
        return self.watch.simulated

    @property
    def engine(self) -> str:
        """What computed the outputs: `board`, or on a stand-in what it names, several with commas."""
        return ",".join(sorted(self.engines)) or "unknown" if self.simulated else "board"

    @property
    def ran_compiled_code(self) -> bool:
        """The outputs are those of the compiled code, not of the quantised model in its place."""
        return self.engine in ("board", "compiled")

    @property
    def model(self) -> Path:
        """The compiled model under our own name."""
        return self.folder / "model.bin"

    def note(self, source: str, line: str) -> None:
        """Keep and pass on one line of a tool."""
        if len(self.log) < 20_000:
            self.log.append(line)
        self.emit.log(line, source)

    async def call(self, command: tuple[str, ...], timeout_s: float, quiet: bool = False) -> ToolRun:
        """Run a tool in the private folder and learn its versions."""
        run = await self.tool.run(command, self.folder, timeout_s, (lambda s, t: None) if quiet else self.note)
        self.peak_memory_bytes = max(self.peak_memory_bytes, run.peak_memory_bytes)
        if run.header.engine:
            self.engines.add(run.header.engine)
        if run.header.hbrt:
            self.watch.learn(run.header)
        return run


@dataclass
class Bench(Desk):
    """A run of a model with its result in the making."""

    request: board_agent_pb2.RunModelRequest = field(default_factory=board_agent_pb2.RunModelRequest)
    result: board_agent_pb2.RunResult = field(default_factory=board_agent_pb2.RunResult)


@asynccontextmanager
async def open_desk(parts: Parts, emit: Emitter, job: str) -> AsyncIterator[Desk]:
    """Takes the board for one piece of work and leaves nothing behind.

    Args:
        parts: what all work shares.
        emit: progress and log lines.
        job: shown as the board's user.

    Raises:
        ConflictError: BOARD_UNFIT when the board takes no work.
    """
    folder = parts.work / f"run-{uuid.uuid4().hex}"
    folder.mkdir(parents=True, mode=0o700)
    watch = parts.watch
    try:
        before = await watch.look()
        refuse_unfit(before)
        watch.busy_job = job or "run"
        yield Desk(parts.store, parts.tool, watch, emit, folder, parts.limits, before)
        watch.count_failure(False)
    except ModelRefused:
        watch.count_failure(False)
        raise
    except BoardliftError as error:
        watch.count_failure(error.reason.startswith("TOOL_"))
        raise
    finally:
        watch.busy_job = ""
        shutil.rmtree(folder, ignore_errors=True)


def refuse_unfit(snapshot: Snapshot) -> None:
    """Pass a board that may take work.

    Raises:
        ConflictError: BOARD_UNFIT with the reasons.
    """
    blocking = [fact for fact in snapshot.facts if fact.blocking]
    if blocking:
        raise ConflictError(
            f"The board takes no work: {blocking[0].message}",
            reason="BOARD_UNFIT",
            remedy=blocking[0].remedy,
            metadata={"reasons": ",".join(fact.code for fact in blocking)},
        )
