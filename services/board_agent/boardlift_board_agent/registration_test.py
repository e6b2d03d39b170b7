"""Who decides whether a board takes work: its health, leases, and nothing that happened to be heard last."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc, queue_pb2
from boardlift_servicekit import channels

from boardlift_board_agent.registration import Registration


class Orchestrator(job_pb2_grpc.BoardServiceServicer):
    """Answers registrations as told."""

    def __init__(self) -> None:
        self.answer = job_pb2.RegisterBoardResponse()
        self.away = False

    async def RegisterBoard(self, request: Any, context: Any) -> Any:
        if self.away:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        return self.answer

    def lend(self, until: float) -> None:
        self.answer.lease_holder = "ann"
        self.answer.lease_end_time.FromNanoseconds(int(until * 1e9))


class Board:
    """An agent and its dispatcher, as far as registration knows them."""

    board_id = "b1"

    def __init__(self) -> None:
        self.fit = True
        self.takes_work = True

    def info(self) -> board_agent_pb2.BoardInfo:
        return board_agent_pb2.BoardInfo(id="b1", target="rdk-x5")

    async def state(self) -> board_agent_pb2.BoardState:
        return board_agent_pb2.BoardState(in_rotation=self.fit)

    def mark_cloned(self, cloned: bool) -> None:
        self.cloned = cloned

    def pause(self) -> None:
        self.takes_work = False

    async def resume(self) -> None:
        self.takes_work = True


class Lab:
    def __init__(self, registration: Registration, orchestrator: Orchestrator, board: Board) -> None:
        self.registration, self.orchestrator, self.board = registration, orchestrator, board

    async def say(self, holder: str, until: float = 0.0) -> None:
        """What the queue carries when a person takes the board or gives it back."""
        lease = queue_pb2.BoardLease(board_id="b1", holder=holder)
        lease.end_time.FromNanoseconds(int(until * 1e9))
        message: Any = SimpleNamespace(data=lease.SerializeToString())
        await self.registration.on_lease(message)


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    server = grpc.aio.server()
    orchestrator = Orchestrator()
    job_pb2_grpc.add_BoardServiceServicer_to_server(orchestrator, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = channels.connect(f"127.0.0.1:{port}")
    board = Board()
    yield Lab(Registration(board, channel), orchestrator, board)
    await channel.close()
    await server.stop(0)


async def test_a_sick_board_takes_nothing_when_a_person_gives_it_back(lab: Lab) -> None:
    lab.board.fit = False
    await lab.registration.register()
    await lab.registration.hold(lab.board)
    assert not lab.board.takes_work  # from the first moment, not from the next renewal
    await lab.say("ann", time.time() + 60)
    await lab.say("")
    assert not lab.board.takes_work
    lab.board.fit = True
    await lab.registration.register()
    assert lab.board.takes_work


async def test_a_sick_board_takes_nothing_while_the_orchestrator_is_away(lab: Lab) -> None:
    await lab.registration.register()
    await lab.registration.hold(lab.board)
    lab.board.fit, lab.orchestrator.away = False, True
    assert not await lab.registration.register()
    assert not lab.board.takes_work


async def test_a_board_that_is_lent_when_it_starts_takes_nothing(lab: Lab) -> None:
    lab.orchestrator.lend(time.time() + 60)
    await lab.registration.register()
    await lab.registration.hold(lab.board)
    assert not lab.board.takes_work


async def test_a_lease_counts_on_a_board_whose_clock_runs_ahead(lab: Lab) -> None:
    await lab.registration.hold(lab.board)
    lab.orchestrator.lend(time.time() - 3600)  # it ends in an hour by the orchestrator's clock, two hours behind
    await lab.registration.register()
    assert lab.registration.leased and not lab.board.takes_work
    lab.orchestrator.answer = job_pb2.RegisterBoardResponse()
    await lab.registration.register()
    assert lab.board.takes_work
