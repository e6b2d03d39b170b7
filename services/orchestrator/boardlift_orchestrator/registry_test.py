from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from boardlift.errors import BoardliftError
from boardlift.v1 import board_agent_pb2, job_pb2
from boardlift_servicekit.messaging import TASK_STREAM, board_consumer, connect
from boardlift_servicekit.streams import QueueLimits, ensure_streams
from support.nats_server import running_nats

from boardlift_orchestrator import registry
from boardlift_orchestrator.boards import BoardServicer
from boardlift_orchestrator.registry import Buckets, Registry

LIMITS = QueueLimits()
PULL, DIAL = board_agent_pb2.BoardInfo.MODE_PULL, board_agent_pb2.BoardInfo.MODE_DIAL


class Lab:
    """Two replicas over one queue."""

    def __init__(self, client: Any) -> None:
        self.js = client.jetstream()
        self.buckets = Buckets.open(client)
        self.replicas = [BoardServicer(client, Registry(client, self.buckets, LIMITS), self.buckets) for _ in range(2)]
        self.registry = Registry(client, self.buckets, LIMITS)

    async def register(self, replica: int, mode: Any) -> int:
        """Register the board at a replica; returns the revision of its record."""
        info = board_agent_pb2.BoardInfo(id="b1", target="t", boot_id="boot", mode=mode)
        if mode == DIAL:
            info.address = "127.0.0.1:7403"
        context = SimpleNamespace(peer=lambda: "ipv4:127.0.0.1:5000")
        await self.replicas[replica].RegisterBoard(job_pb2.RegisterBoardRequest(board=info), context)
        entry = await self.buckets.boards.get("b1")
        assert entry is not None
        return entry.revision


@pytest.fixture(scope="module")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_nats(tmp_path_factory.mktemp("nats")) as stack:
        yield stack.nats_url


@pytest.fixture
async def lab(nats_url: str) -> AsyncIterator[Lab]:
    client = await connect(nats_url, "test")
    await ensure_streams(client.jetstream(), LIMITS)
    yield Lab(client)
    await client.close()


async def test_a_mode_that_goes_to_and_fro_over_two_replicas_is_stored_each_time(lab: Lab) -> None:
    """The agent was killed, so its sign of life went on; the first replica has stored these very bytes before."""
    for replica, mode in ((0, PULL), (1, DIAL), (0, PULL), (1, DIAL)):
        await lab.register(replica, mode)
        assert await lab.registry.is_dialled("b1") is (mode == DIAL)


async def test_a_renewal_writes_the_record_no_more(lab: Lab) -> None:
    revisions = [await lab.register(replica, PULL) for replica in (0, 0, 1, 0, 1, 0)]
    assert len(set(revisions)) == 2  # by each replica once
    await lab.buckets.presence.remove("b1")
    assert await lab.register(0, PULL) > revisions[-1]


async def test_a_board_without_a_sign_of_life_for_long_is_gone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_gone() -> bool:
        return next(view.gone for view in await lab.registry.views() if view.id == "b1")

    await lab.register(0, PULL)
    monkeypatch.setattr(registry, "_GONE_S", 0.0)
    assert not await is_gone()
    await lab.buckets.presence.remove("b1")
    assert await is_gone()
    monkeypatch.undo()
    assert not await is_gone()


async def reason_of_delete(lab: Lab, board: str) -> str:
    try:
        await lab.replicas[1].DeleteBoard(job_pb2.DeleteBoardRequest(board_id=board), None)
    except BoardliftError as error:
        assert error.remedy
        return error.reason
    return ""


async def test_a_board_that_is_gone_can_be_forgotten_and_comes_back_as_a_new_one(lab: Lab) -> None:
    await lab.register(0, PULL)
    assert await reason_of_delete(lab, "b1") == "BOARD_ONLINE"
    await lab.buckets.presence.remove("b1")
    assert await reason_of_delete(lab, "b1") == ""
    assert await reason_of_delete(lab, "b1") == "BOARD_NOT_FOUND"
    consumers = {info.name for info in await lab.js.consumers_info(TASK_STREAM)}
    assert board_consumer("b1") not in consumers and not await lab.registry.boards()
    await lab.register(0, PULL)
    await lab.js.consumer_info(TASK_STREAM, board_consumer("b1"))
    assert [view.id for view in await lab.registry.views()] == ["b1"]


async def test_boards_without_a_sign_of_life_for_long_are_forgotten_and_others_stay(lab: Lab) -> None:
    await lab.register(0, PULL)
    assert await lab.registry.forget_old(time.time() + 60) == []  # it is online
    await lab.buckets.presence.remove("b1")
    assert await lab.registry.forget_old(time.time() - 60) == []
    assert await lab.registry.forget_old(time.time() + 60) == ["b1"]
    assert not await lab.registry.knows("b1")
