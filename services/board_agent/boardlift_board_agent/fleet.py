"""Hundreds of light simulated boards in one process, for scale tests of everything around boards.

`boardlift-agent fleet 200`. Each board has its own connection to NATS, registers, pulls, can die and come back, as a
real agent does. It executes nothing: its result says so (NOTHING_EXECUTED), carries made-up latencies marked simulated
and no comparison, so that no gate can pass on it.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from dataclasses import dataclass, field
from typing import Any

import structlog
from boardlift.errors import UnsupportedError
from boardlift.v1 import board_agent_pb2, queue_pb2
from boardlift_servicekit import messaging
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.channels import ChannelSettings, connect
from boardlift_servicekit.consume import Pace
from boardlift_servicekit.dispatcher import Dispatcher
from boardlift_servicekit.stage_calls import Emit
from nats.aio.client import Client

from boardlift_board_agent import __version__
from boardlift_board_agent.convert import figure, finding
from boardlift_board_agent.registration import Registration

_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True)
class FleetPlan:
    """How the fleet behaves."""

    boards: int
    """Number of boards."""
    nats: tuple[str, ...]
    """NATS servers."""
    orchestrator: str
    """`host:port`."""
    prefix: str = "fleet"
    """Boards are called `<prefix>-<number>`."""
    target: str = "rdk-x5"
    run_s: tuple[float, float] = (0.2, 0.6)
    """Shortest and longest run."""
    death_rate: float = 0.0
    """Share of runs in the middle of which the board dies without a word."""
    dead_s: float = 5.0
    """Time until a dead board is started again."""
    pace: Pace = field(default_factory=Pace)
    """How the queue is served."""
    seed: int = 0


class LightBoard:
    """One board: registrant and stage runner."""

    def __init__(self, plan: FleetPlan, number: int, channel: Any, store: ArtifactStore) -> None:
        """Prepare board `number`."""
        self.board_id = f"{plan.prefix}-{number}"
        self._plan, self._channel, self._store = plan, channel, store
        self._random = random.Random(f"{plan.seed}/{number}")  # noqa: S311 - behaviour of a test board
        self._boot_id = secrets.token_hex(8)
        self._busy_job = ""
        self._death = asyncio.Event()
        self._client: Client | None = None
        self.runs = 0
        """Runs it finished."""
        self.deaths = 0
        """Times it died."""

    def info(self) -> board_agent_pb2.BoardInfo:
        """What it says it is."""
        return board_agent_pb2.BoardInfo(
            id=self.board_id,
            target=self._plan.target,
            simulated=True,
            model="light board of a fleet (SIMULATED)",
            boot_id=self._boot_id,
            agent_version=__version__,
            labels={"fleet": self._plan.prefix},
            absent=["soc", "serial_hash", "os_version"],
        )

    async def state(self) -> board_agent_pb2.BoardState:
        """Always fit."""
        state = board_agent_pb2.BoardState(in_rotation=True, busy_job=self._busy_job)
        state.observe_time.GetCurrentTime()
        return state

    def mark_cloned(self, cloned: bool) -> None:
        """A fleet has no clones of its own; another process with the same prefix shows in the log."""
        if cloned:
            _LOG.warning("fleet_board_cloned", board=self.board_id)

    async def live(self) -> None:
        """Live, die and come back until cancelled."""
        while True:
            self._death.clear()
            await self._one_life()
            self.deaths += 1
            await asyncio.sleep(self._plan.dead_s)

    async def _one_life(self) -> None:
        async def on_closed() -> None:
            self._death.set()  # without NATS it would only look alive

        client = await messaging.connect(list(self._plan.nats), self.board_id, wait_s=60, closed_cb=on_closed)
        self._client = client
        registration = Registration(self, self._channel)
        names = (messaging.board_consumer(self.board_id), messaging.pool_consumer(self._plan.target))
        dispatcher = Dispatcher(
            client, self._store, self, worker=self.board_id, consumers=names, slots=1, pace=self._plan.pace
        )
        registration.start()
        try:
            await registration.registered.wait()
            await client.subscribe(f"ctl.board.{self.board_id}", cb=registration.on_lease)
            await registration.hold(dispatcher)
            await dispatcher.start()
            await self._death.wait()
        finally:
            died = self._death.is_set()
            if died:
                await messaging.disconnect(client)  # first: a dead board gives nothing back
            await dispatcher.stop()
            await registration.stop(None if died else client)
            await messaging.disconnect(client)

    async def run(self, task: queue_pb2.StageTask, emit: Emit) -> board_agent_pb2.RunResult:
        """Pretend to run, or die in the middle.

        Raises:
            UnsupportedError: a diagnosis, which needs a board that executes.
        """
        if task.stage != "board":
            raise UnsupportedError(
                "A light board executes nothing.", reason="STAGE_UNSUPPORTED", remedy="Start a whole board agent."
            )
        self._busy_job = task.job_id
        try:
            seconds = self._random.uniform(*self._plan.run_s)
            if self._random.random() < self._plan.death_rate:
                await asyncio.sleep(seconds / 2)
                self._death.set()
                await asyncio.Event().wait()
            await asyncio.sleep(seconds)
        finally:
            self._busy_job = ""
        self.runs += 1
        latency = [figure("mean_ms", 1.0 + self._random.random(), "ms", True, "light board, made up")]
        text = "This is a light board of a fleet: nothing was executed."
        return board_agent_pb2.RunResult(
            board=self.info(),
            latency=[board_agent_pb2.LatencyResult(threads=1, figures=latency)],
            findings=[finding("NOTHING_EXECUTED", "error", text, "board", "Use a real or a simulated board.")],
        )

    async def stop(self, task: queue_pb2.StageTask) -> None:
        """Runs are short: a stopped one ends by itself and its result is dropped."""


class Fleet:
    """All boards."""

    def __init__(self, plan: FleetPlan, store: ArtifactStore, settings: ChannelSettings | None = None) -> None:
        """Prepare the fleet; results go to `store`."""
        self._plan = plan
        self._channel = connect(plan.orchestrator, settings)
        self.boards = [LightBoard(plan, number, self._channel, store) for number in range(plan.boards)]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all boards, a few at a time."""
        for board in self.boards:
            self._tasks.append(asyncio.create_task(board.live()))
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Stop all boards."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channel.close()
