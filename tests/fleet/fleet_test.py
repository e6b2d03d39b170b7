"""Two hundred light boards with random deaths finish a thousand board stages: none lost, none double, fair spread."""

from __future__ import annotations

import asyncio
import collections
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc, queue_pb2
from boardlift_board_agent.fleet import Fleet, FleetPlan
from boardlift_servicekit import channels
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from boardlift_servicekit.consume import Pace
from boardlift_servicekit.messaging import RESULT_STREAM, connect, publish_task
from nats.js.api import RePublish
from support.stack import Stack, running

BOARDS, STAGES = 200, 1000


class Outcomes:
    """Every outcome that was stored, by job and attempt; a second one for the same attempt counts as double.

    What is sent is not what is stored: a report whose answer comes late is sent again, and the server drops it.
    """

    def __init__(self) -> None:
        self.workers: dict[str, str] = {}
        self.doubles: list[str] = []

    async def listen(self, client: Any) -> None:
        """Have the server tell what it stores."""
        js = client.jetstream()
        config = (await js.stream_info(RESULT_STREAM)).config
        await js.update_stream(config.evolve(republish=RePublish(src=">", dest="stored.>")))
        await client.subscribe("stored.res.>", cb=self.take)

    async def take(self, message: Any) -> None:
        outcome = queue_pb2.StageOutcome.FromString(message.data)
        if outcome.started:
            return
        if outcome.job_id in self.workers:
            self.doubles.append(outcome.job_id)
        self.workers[outcome.job_id] = outcome.worker


async def listed(channel: Any) -> int:
    stub, token, count = job_pb2_grpc.BoardServiceStub(channel), "", 0
    while True:
        answer = await stub.ListBoards(job_pb2.ListBoardsRequest(page_size=1000, page_token=token), timeout=30)
        count += sum(board.online for board in answer.boards)
        token = answer.next_page_token
        if not token:
            return count


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_fleet_with_random_deaths_loses_nothing_and_shares_fairly(tmp_path: Path) -> None:
    bare = Stack(tmp_path, settings={"BOARDLIFT_ACK_WAIT": "4"})
    bare.services.clear()
    bare.worker_ports.clear()
    with running(bare) as stack:
        channel, client = channels.connect(stack.address), await connect(stack.nats_url, "test")
        outcomes = Outcomes()
        await outcomes.listen(client)
        store = RemoteStore(channel, LocalStore(tmp_path / "results"))
        plan = FleetPlan(
            BOARDS,
            (stack.nats_url,),
            stack.address,
            run_s=(0.5, 1.5),
            death_rate=0.05,
            dead_s=4.0,
            pace=Pace(expires_s=20, heartbeat_s=2, beat_s=1.0),
        )
        fleet = Fleet(plan, store)
        await fleet.start()
        begun = time.monotonic()
        while await listed(channel) < BOARDS:
            assert time.monotonic() - begun < 200, await listed(channel)
            await asyncio.sleep(0.5)
        up_s = time.monotonic() - begun
        begun = time.monotonic()
        request = board_agent_pb2.RunModelRequest(run_id="fleet")
        for number in range(STAGES):
            task = queue_pb2.StageTask(
                job_id=f"fleet-job-{number}", stage="board", variant="int8", attempt=1, board=request
            )
            await publish_task(client.jetstream(), task, place="pool.rdk-x5")
        while len(outcomes.workers) < STAGES:
            assert time.monotonic() - begun < 350, f"{len(outcomes.workers)} of {STAGES}"
            await asyncio.sleep(0.2)
        took_s = time.monotonic() - begun
        await asyncio.sleep(5)  # stragglers would show up now
        deaths, runs = sum(b.deaths for b in fleet.boards), sum(b.runs for b in fleet.boards)
        await fleet.stop()
        await client.close()
        await channel.close()
    spread = collections.Counter(outcomes.workers.values())
    shares = np.array([spread.get(board.board_id, 0) for board in fleet.boards])
    print(
        f"{BOARDS} boards online after {up_s:.1f} s; {STAGES} stages in {took_s:.1f} s with {deaths} deaths, "
        f"{runs} runs finished; per board {shares.min()} to {shares.max()}, "
        f"mean {shares.mean():.1f}, sd {shares.std():.1f}"
    )
    assert len(outcomes.workers) == STAGES
    assert outcomes.doubles == []
    assert deaths >= 20
    assert shares.max() <= 3 * shares.mean()
    assert (shares > 0).mean() > 0.95
