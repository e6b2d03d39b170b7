"""What one run works with: request, artifacts, tool, board, log, private folder, result."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from boardlift.v1 import board_agent_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.executions import Emitter

from boardlift_board_agent.board_tool import BoardTool
from boardlift_board_agent.failures import ToolRun
from boardlift_board_agent.watch_board import BoardWatch


@dataclass(frozen=True)
class Limits:
    """Time limits of single tool runs."""

    infer_s: float = 120.0
    perf_s: float = 300.0


@dataclass
class Bench:
    """Everything one run works with."""

    request: board_agent_pb2.RunModelRequest
    store: ArtifactStore
    tool: BoardTool
    watch: BoardWatch
    emit: Emitter
    folder: Path
    """Private folder of this run."""
    limits: Limits
    result: board_agent_pb2.RunResult = field(default_factory=board_agent_pb2.RunResult)
    log: list[str] = field(default_factory=list)

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
        if run.header.hbrt:
            self.watch.learn(run.header)
        return run
