"""A registry with boards that are dialled, over a real NATS server; their agents run in the test's own process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boardlift.v1 import board_agent_pb2, job_pb2, queue_pb2
from boardlift_orchestrator.dial_address import DialRules
from boardlift_orchestrator.dial_boards import BoardDialler
from boardlift_orchestrator.dialled_board import DialParts
from boardlift_orchestrator.registry import Buckets, Registry
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.consume import Pace
from boardlift_servicekit.messaging import connect, publish_task
from boardlift_servicekit.streams import QueueLimits, ensure_streams
from support.fake_agent import FakeAgent

LIMITS = QueueLimits(ack_wait_s=2.0)


class DialLab:
    """Queue, registry, diallers and agents."""

    def __init__(self, url: str, folder: Path, name: str) -> None:
        self.url, self.folder, self.name = url, folder, name
        self.diallers: list[tuple[BoardDialler, Any]] = []
        self.agents: list[FakeAgent] = []
        self.outcomes: list[queue_pb2.StageOutcome] = []

    async def start(self) -> DialLab:
        self.client = await connect(self.url, "test")
        await ensure_streams(self.client.jetstream(), LIMITS)
        self.buckets = Buckets.open(self.client)
        self.registry = Registry(self.client, self.buckets, LIMITS)

        async def take(message: Any) -> None:
            outcome = queue_pb2.StageOutcome.FromString(message.data)
            if not outcome.started and outcome.job_id.startswith(self.name):
                self.outcomes.append(outcome)

        await self.client.subscribe("res.>", cb=take)
        return self

    async def stop(self) -> None:
        for dialler, client in self.diallers:
            await dialler.stop()
            await client.close()
        for agent in self.agents:
            await self.buckets.presence.remove(agent.info.id)
            await agent.stop()
        await self.client.close()

    async def dialler(self, **parts: Any) -> BoardDialler:
        client = await connect(self.url, "orchestrator")
        values: dict[str, Any] = {
            "client": client,
            "store": LocalStore(self.folder / "store"),
            "registry": Registry(client, Buckets.open(client), LIMITS),
            "rules": DialRules(),
            "channel": ChannelSettings(),
            "tokens": None,
            "owner": f"orch-{len(self.diallers)}",
            "pace": Pace(heartbeat_s=0.5, beat_s=0.4),
            "life_s": 3,
            "patience_s": 1.0,
            **parts,
        }
        made = BoardDialler(Buckets.open(client).boards, DialParts(**values))
        self.diallers.append((made, client))
        await made.start()
        return made

    async def agent(self, number: int, target: str = "") -> FakeAgent:
        made = FakeAgent(f"{self.name}-{number}", self.folder)
        made.info.target = target or self.name
        await made.start()
        self.agents.append(made)
        await self.register(made.info)
        return made

    async def register(self, info: board_agent_pb2.BoardInfo, *, fit: bool = True, life_s: int = 60) -> None:
        state = board_agent_pb2.BoardState(in_rotation=fit)
        await self.registry.register(queue_pb2.BoardRecord(info=info, state=state, peer="127.0.0.1"))
        sign = queue_pb2.BoardPresence(boot_id=info.boot_id, state=state)
        await self.buckets.presence.put(info.id, sign.SerializeToString(), life_s=life_s)

    async def send(self, place: str, job: str, attempt: int = 1) -> None:
        request = board_agent_pb2.RunModelRequest(job_id=f"{self.name}-{job}", run_id=f"{job}-{attempt}")
        task = queue_pb2.StageTask(job_id=request.job_id, stage="board", attempt=attempt, board=request)
        await publish_task(self.client.jetstream(), task, place=place)

    async def board(self, agent: FakeAgent) -> job_pb2.Board:
        return next(board for board in await self.registry.boards() if board.info.id == agent.info.id)

    async def reasons(self, agent: FakeAgent) -> list[str]:
        board = await self.board(agent)
        codes = [finding.code for finding in board.state.findings]
        assert board.state.in_rotation is (not codes)
        return codes

    async def until_in_rotation(self, *agents: FakeAgent) -> None:
        for agent in agents:
            await until_reasons(self, agent)


async def until(condition: Callable[[], Any], wait_s: float = 60) -> None:
    end = time.monotonic() + wait_s
    while True:
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.05)


async def until_reasons(lab: DialLab, agent: FakeAgent, *codes: str) -> None:
    """Return when the board is out of rotation for these reasons, or in rotation when none is named."""

    async def there() -> bool:
        return await lab.reasons(agent) == list(codes)

    await until(there)
