"""The board as the agent knows it over time: what it is, how it is now, whether it may take work."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from boardlift.errors import BoardliftError, PreconditionError
from boardlift_servicekit.tool import ToolCommand, run_tool

from boardlift_board_agent.board_tool import BoardTool
from boardlift_board_agent.bpu_users import foreign_bpu_users
from boardlift_board_agent.health import FAILURE_LIMIT, Fact, HealthLimits, RuntimeState, in_rotation, judge_health
from boardlift_board_agent.hold_governor import GovernorKeeper
from boardlift_board_agent.parse_report import Header
from boardlift_board_agent.parse_somstatus import SomStatus, parse_somstatus
from boardlift_board_agent.probe import BoardFacts, BoardReading, probe_board, read_board


@dataclass(frozen=True)
class Snapshot:
    """The board at one moment."""

    reading: BoardReading
    facts: list[Fact]

    @property
    def in_rotation(self) -> bool:
        """True when nothing blocks."""
        return in_rotation(self.facts)


_ASK_AGAIN_S = 30.0


class BoardWatch:
    """Looks at the board."""

    def __init__(
        self,
        root: Path,
        work: Path,
        tool: BoardTool,
        limits: HealthLimits,
        retry_s: float = 600.0,
        governor: GovernorKeeper | None = None,
    ) -> None:
        """Read files below `root`; run the tool in `work`; try a failing board again after `retry_s`.

        `governor` sets governors for runs; without one, none may be set.
        """
        self._retry_s = retry_s
        self.governor = governor or GovernorKeeper(root)
        self._root, self._work, self._tool, self._limits = root, work, tool, limits
        self.facts: BoardFacts = probe_board(root)
        self.version: Header | None = None
        self.runtime = RuntimeState()
        self.busy_job = ""
        self._last_failure = 0.0
        self._asked = 0.0

    @property
    def simulated(self) -> bool:
        """The device tree or the tool says that this is a stand-in."""
        return self.facts.simulated or (self.version is not None and self.version.simulated)

    async def start(self) -> None:
        """Ask the tool for its version; `look` asks again while there is no answer."""
        self._asked = time.monotonic()
        self.version = await self._tool.version(self._work)
        self.runtime = dataclasses.replace(self.runtime, tool_present=self.version is not None)

    def learn(self, header: Header) -> None:
        """Keep versions that only a run shows, and what it says about version skew."""
        known = self.version or header
        self.version = dataclasses.replace(
            known,
            hbrt=header.hbrt or known.hbrt,
            dnn=header.dnn or known.dnn,
            bpu_platform=header.bpu_platform or known.bpu_platform,
            simulated=known.simulated or header.simulated,
        )
        self.runtime = dataclasses.replace(self.runtime, tool_present=True, skew=header.skew)

    def count_failure(self, failed: bool) -> None:
        """Count runs that failed in a row through no fault of their model."""
        if failed:
            self._last_failure = time.monotonic()
        self.runtime = dataclasses.replace(
            self.runtime, failures_in_row=self.runtime.failures_in_row + 1 if failed else 0
        )

    def mark_cloned(self, cloned: bool) -> None:
        """Remember that another agent serves under our id."""
        self.runtime = dataclasses.replace(self.runtime, cloned=cloned)

    async def look(self, running: bool = False) -> Snapshot:
        """Read the sensors and judge.

        Args:
            running: a run of ours is going on, so load of the BPU is our own.
        """
        if not self.runtime.tool_present and time.monotonic() - self._asked > _ASK_AGAIN_S:
            await self.start()  # installed meanwhile, or the machine was too busy to answer in time
        som = await self._somstatus()
        reading = await asyncio.to_thread(read_board, self._root, self._work, som)
        idle = not running and not self.busy_job
        users = await asyncio.to_thread(foreign_bpu_users, self._root, os.getpid(), not idle)
        if self.governor.stuck and idle:
            self.governor.restore()
        stuck = self.governor.stuck
        runtime = dataclasses.replace(self.runtime, foreign_processes=users or (), governor_stuck=stuck)
        if runtime.failures_in_row >= FAILURE_LIMIT and time.monotonic() - self._last_failure > self._retry_s:
            # One more try: success clears the count, failure takes the board out again.
            runtime = dataclasses.replace(runtime, failures_in_row=FAILURE_LIMIT - 1)
        return Snapshot(reading, judge_health(reading, runtime, self._limits, idle=idle))

    @asynccontextmanager
    async def during(self, seen: list[Snapshot], every_s: float = 1.0) -> AsyncIterator[None]:
        """Look again and again while the body runs; the snapshots land in `seen`.

        Raises:
            OSError: a look failed: what was seen is not all that there was.
        """

        async def loop() -> None:
            while True:
                seen.append(await self.look(running=True))
                await asyncio.sleep(every_s)

        task = asyncio.create_task(loop())
        try:
            yield
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def _somstatus(self) -> SomStatus | None:
        """Only where the files are not enough: `hrut_somstatus` wants root and takes a while."""
        if self._root != Path("/") or (self._root / "sys/class/hwmon/hwmon0/temp2_input").exists():
            return None
        lines: list[str] = []
        command = ToolCommand(("hrut_somstatus",), self._work, self._tool.environment(self._work), timeout_s=5)
        try:
            await run_tool(command, lambda source, line: lines.append(line))
        except (PreconditionError, BoardliftError):
            return None  # not a board with that tool: its facts stay absent
        return parse_somstatus("\n".join(lines))
