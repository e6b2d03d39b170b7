from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from boardlift.v1 import board_agent_pb2, queue_pb2
from support.dial_lab import DialLab, until
from support.nats_server import running_nats

from boardlift_orchestrator import dial_boards
from boardlift_orchestrator.dialled_board import DialledBoard


@pytest.fixture(scope="module")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_nats(tmp_path_factory.mktemp("nats")) as stack:
        yield stack.nats_url


@pytest.fixture
async def lab(nats_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[DialLab]:
    names = [item.name for item in request.session.items]
    made = await DialLab(nats_url, tmp_path, f"t{names.index(request.node.name)}").start()
    yield made
    await made.stop()


async def test_a_dialled_board_gets_its_own_tasks_and_the_pools_one_at_a_time(lab: DialLab) -> None:
    agent = await lab.agent(1)
    assert await lab.reasons(agent) == ["BOARD_NOT_DIALLED"]
    dialler = await lab.dialler()
    await lab.until_in_rotation(agent)
    agent.go.clear()
    await lab.send(f"id.{agent.info.id}", "own")
    await lab.send(f"pool.{lab.name}", "pool")
    await until(lambda: agent.runs)
    await asyncio.sleep(1.0)
    assert len(agent.runs) == 1 and dialler.busy_slots == 1
    agent.go.set()
    await until(lambda: len(lab.outcomes) == 2)
    assert {outcome.worker for outcome in lab.outcomes} == {agent.info.id}
    assert all(outcome.HasField("result") and not outcome.HasField("failure") for outcome in lab.outcomes)


async def test_two_orchestrators_give_each_stage_out_once(lab: DialLab) -> None:
    agents = [await lab.agent(number) for number in (1, 2)]
    await lab.dialler()
    await lab.dialler()
    await lab.until_in_rotation(*agents)
    for number in range(12):
        await lab.send(f"pool.{lab.name}", f"job{number}")
    await until(lambda: len(lab.outcomes) == 12)
    assert len([run for agent in agents for run in agent.runs]) == 12
    owners = [queue_pb2.BoardDial.FromString(e.value).dialler for e in await lab.buckets.leases.entries()
              if e.key.startswith(f"dial.{lab.name}-")]  # fmt: skip
    assert len(owners) == 2


async def test_the_other_orchestrator_takes_over_and_joins_the_run(lab: DialLab) -> None:
    agent = await lab.agent(1)
    first = await lab.dialler()
    await lab.until_in_rotation(agent)
    await lab.dialler()
    agent.go.clear()
    await lab.send(f"pool.{lab.name}", "job")
    await until(lambda: agent.runs)
    client = lab.diallers[0][1]
    await client.close()  # as if it had died: it gives nothing back and renews nothing
    await first.stop()
    await asyncio.sleep(0.5)
    agent.go.set()
    await until(lambda: lab.outcomes)
    await asyncio.sleep(1.0)
    assert len(lab.outcomes) == 1 and len(agent.runs) == 1 and agent.stopped == 0


async def test_a_board_whose_sign_of_life_ends_loses_its_stage_to_another(lab: DialLab) -> None:
    dying = await lab.agent(1)
    await lab.dialler()
    await lab.until_in_rotation(dying)
    dying.go.clear()
    await lab.send(f"pool.{lab.name}", "job")
    await until(lambda: dying.runs)
    other = await lab.agent(2)
    await lab.until_in_rotation(other)
    await lab.register(dying.info, life_s=1)
    await until(lambda: lab.outcomes)
    assert lab.outcomes[0].worker == other.info.id
    dying.go.set()  # the straggler ends as well, and nobody hears of it
    await asyncio.sleep(1.0)
    assert len(lab.outcomes) == 1


async def test_a_board_that_pulls_again_is_dialled_no_more(lab: DialLab) -> None:
    agent = await lab.agent(1)
    await lab.dialler()
    await lab.until_in_rotation(agent)
    agent.info.mode, agent.info.address = board_agent_pb2.BoardInfo.MODE_PULL, ""
    await lab.register(agent.info)

    async def let_go() -> bool:
        return await lab.buckets.leases.get(f"dial.{agent.info.id}") is None

    await until(let_go)
    assert await lab.reasons(agent) == []
    await lab.send(f"id.{agent.info.id}", "job")
    await asyncio.sleep(1.0)
    assert not agent.runs


async def test_a_record_that_can_not_be_read_hides_no_other_board(lab: DialLab) -> None:
    await lab.buckets.boards.put(f"{lab.name}-bad", b"\xff\xff")
    await lab.dialler()
    agent = await lab.agent(1)
    await lab.until_in_rotation(agent)


async def test_a_board_that_takes_long_to_leave_keeps_nobody_waiting(
    lab: DialLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = await lab.agent(1)
    await lab.dialler()
    await lab.until_in_rotation(slow)
    stop, left = DialledBoard.stop, asyncio.Event()

    async def stop_slowly(self: DialledBoard) -> None:
        if self.id == slow.info.id:
            await left.wait()
        await stop(self)

    monkeypatch.setattr(DialledBoard, "stop", stop_slowly)
    slow.info.mode = board_agent_pb2.BoardInfo.MODE_PULL
    await lab.register(slow.info)
    await asyncio.sleep(1.5)
    other = await lab.agent(2)
    await lab.until_in_rotation(other)
    slow.info.mode = board_agent_pb2.BoardInfo.MODE_DIAL  # back before it has been left
    await lab.register(slow.info)
    await asyncio.sleep(1.5)
    left.set()
    await lab.until_in_rotation(slow)


async def test_who_is_long_away_is_looked_after_again_when_back(lab: DialLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial_boards, "_GONE_S", 1.0)
    agent = await lab.agent(1)
    dialler = await lab.dialler()
    await lab.until_in_rotation(agent)
    await lab.buckets.presence.remove(agent.info.id)
    await until(lambda: not dialler._boards)
    await lab.register(agent.info)
    await lab.until_in_rotation(agent)


async def test_boards_cost_no_requests_of_their_own(lab: DialLab) -> None:
    """Two orchestrators: together some reads a second for all boards, and one renewal of a lease a second for each."""
    agents = [await lab.agent(number) for number in range(1, 13)]
    await lab.dialler()
    await lab.dialler()
    await lab.until_in_rotation(*agents)
    for agent in agents:
        await lab.buckets.presence.remove(agent.info.id)
    await asyncio.sleep(4)
    clients = [client for _, client in lab.diallers]
    before = sum(client.stats["out_msgs"] for client in clients)
    await asyncio.sleep(5)
    assert sum(client.stats["out_msgs"] for client in clients) - before < 2 * 3 * 3 * 5 + 20
