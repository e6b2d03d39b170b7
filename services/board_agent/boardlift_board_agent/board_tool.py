"""Starts the vendor's tool and our sampler: own process group, clean environment, time limit, everything logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boardlift.errors import PreconditionError
from boardlift_servicekit.tool import ToolCommand, ToolResult, run_tool

from boardlift_board_agent.failures import ToolRun
from boardlift_board_agent.parse_report import Header, parse_header

LineSink = Callable[[str, str], None]
"""Receives (source, line)."""
_MAX_TEXT = 4 << 20
_PASSED = ("HB_DNN_", "LD_LIBRARY_PATH", "BOARDLIFT_SIMULATOR_", "BOARDLIFT_TOOLCHAIN")


@dataclass(frozen=True)
class BoardTool:
    """How the board's programs are started."""

    program: str
    """`hrt_model_exec`, by name or absolute path."""
    search_path: str
    """PATH of the programs."""
    sampler: tuple[str, ...] = ()
    """Our per-frame timer; empty when the board has none."""
    passed: Mapping[str, str] = field(default_factory=dict)
    """Variables handed on (runtime settings; nothing of the agent's own)."""

    async def run(self, command: tuple[str, ...], work: Path, timeout_s: float, on_line: LineSink) -> ToolRun:
        """Runs one command to its end.

        Args:
            command: program and arguments from `hrt_model_exec.py`.
            work: private folder: current directory, HOME and TMPDIR of the tool.
            timeout_s: after that the whole group is stopped.
            on_line: receives every line as it comes.

        Returns:
            How it ended and all it printed (4 MiB at most).

        Raises:
            PreconditionError: TOOL_MISSING.
        """
        lines: list[str] = []
        size = 0

        def take(source: str, line: str) -> None:
            nonlocal size
            size += len(line) + 1
            if size <= _MAX_TEXT:
                lines.append(line)
            on_line(source, line)

        result = await run_tool(
            ToolCommand(argv=command, cwd=work, environment=self.environment(work), timeout_s=timeout_s), take
        )
        return _finished(command, result, "\n".join(lines))

    def environment(self, work: Path) -> dict[str, str]:
        """The tool's whole environment."""
        own = {"PATH": self.search_path, "HOME": str(work), "TMPDIR": str(work), "LC_ALL": "C.UTF-8"}
        return {**dict(self.passed), **own}

    async def version(self, work: Path) -> Header | None:
        """Asks the tool for its version; None when it does not start.

        Args:
            work: private folder.
        """
        try:
            run = await self.run((self.program, "--version"), work, 20.0, lambda source, line: None)
        except PreconditionError:
            return None
        return run.header if run.exit_code == 0 else None


def passed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables a tool may see: the runtime's own and the simulated board's."""
    return {key: value for key, value in environment.items() if key.startswith(_PASSED)}


def _finished(command: tuple[str, ...], result: ToolResult, text: str) -> ToolRun:
    return ToolRun(
        command=command[1].lstrip("-") if len(command) > 1 and not command[1].startswith("--model") else "sample",
        exit_code=result.exit_code,
        signal=result.signal,
        timed_out=result.timed_out or result.silent,
        text=text,
        header=parse_header(text),
        peak_memory_bytes=result.peak_memory_bytes,
    )
