from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from boardlift.errors import BoardliftError, CancelledError, InvalidInputError, UnavailableError
from boardlift.v1 import board_agent_pb2, queue_pb2
from boardlift_servicekit import channels
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.server import ServerSettings
from support.fake_agent import FakeAgent, make_certificate
from support.stack import free_port

from boardlift_orchestrator.dial_runner import DialRunner, Wanted

TASK = queue_pb2.StageTask(
    job_id="j", stage="board", variant="v", attempt=1, board=board_agent_pb2.RunModelRequest(job_id="j")
)


class Line:
    """A runner on its way to an agent."""

    def __init__(self, address: str, settings: ChannelSettings | None = None, **wanted: str) -> None:
        self.troubles = 0
        self.channel = channels.connect(address, settings, server_name=f"{wanted.get('board', 'b1')}.board")
        who = Wanted(**{"board": "b1", "boot_id": "boot-1", "address": address, **wanted})
        self.runner = DialRunner(self.channel, who, patience_s=0.5, check_s=2, on_trouble=self.count)

    def count(self, _error: BoardliftError) -> None:
        self.troubles += 1

    async def run(self) -> Any:
        async def emit(_event: Any) -> None:
            pass

        return await asyncio.wait_for(self.runner.run(TASK, emit), 20)

    async def reason(self) -> str:
        with pytest.raises(UnavailableError) as caught:
            await self.run()
        assert caught.value.remedy
        return str(caught.value.reason)


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    made = await FakeAgent("b1", tmp_path).start()
    yield made
    await made.stop()


async def test_the_board_that_registered_runs_the_stage(agent: FakeAgent) -> None:
    line = Line(agent.info.address)
    assert (await line.run()).board.id == "b1"
    assert agent.runs == ["j"] and line.troubles == 0
    await line.channel.close()


async def test_any_other_board_is_refused_before_it_runs_anything(agent: FakeAgent) -> None:
    for wanted in ({"board": "b2"}, {"boot_id": "boot-2"}):
        line = Line(agent.info.address, **wanted)
        assert await line.reason() == "DIAL_WRONG_BOARD"
        assert line.troubles == 1
        await line.channel.close()
    assert agent.runs == []


async def test_an_agent_that_pulls_again_is_left_alone(agent: FakeAgent) -> None:
    agent.info.mode = board_agent_pb2.BoardInfo.MODE_PULL
    line = Line(agent.info.address)
    assert await line.reason() == "DIAL_NOT_WANTED"
    await line.channel.close()


async def test_nobody_there() -> None:
    line = Line(f"127.0.0.1:{free_port()}")
    assert await line.reason() == "DIAL_UNREACHABLE"
    await line.channel.close()


async def test_somebody_who_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    silent = await asyncio.start_server(lambda reader, writer: asyncio.sleep(60), "127.0.0.1", 0)
    line = Line(f"127.0.0.1:{silent.sockets[0].getsockname()[1]}")
    assert await line.reason() == "DIAL_UNREACHABLE"
    await line.channel.close()
    silent.close()


async def test_an_agent_that_dies_in_the_middle(agent: FakeAgent) -> None:
    agent.go.clear()
    line = Line(agent.info.address)
    running = asyncio.create_task(line.reason())
    while not agent.runs:
        await asyncio.sleep(0.02)
    await agent.host._server.stop(None)
    assert await running == "DIAL_UNREACHABLE"
    assert line.troubles == 1
    await line.channel.close()


async def test_what_the_agent_says_about_the_stage_passes_as_it_is(agent: FakeAgent) -> None:
    async def refuse(request: Any, context: Any) -> Any:
        raise InvalidInputError("No samples.", reason="SAMPLES_MISSING")
        yield

    agent.RunModel = refuse  # type: ignore[method-assign]
    await agent.host.stop()
    await agent.start()
    line = Line(agent.info.address)
    with pytest.raises(BoardliftError) as caught:
        await line.run()
    assert isinstance(caught.value, InvalidInputError) and caught.value.reason == "SAMPLES_MISSING"
    assert line.troubles == 0
    await line.channel.close()


async def test_a_stage_that_something_else_is_away_for_does_not_blame_the_board(agent: FakeAgent) -> None:
    async def refuse(request: Any, context: Any) -> Any:
        raise UnavailableError("The artifact store can't be reached.")
        yield

    agent.RunModel = refuse  # type: ignore[method-assign]
    await agent.host.stop()
    await agent.start()
    line = Line(agent.info.address)
    with pytest.raises(UnavailableError, match="artifact store") as caught:
        await line.run()
    assert caught.value.reason == "UNAVAILABLE" and line.troubles == 0
    await line.channel.close()


async def test_a_stop_ends_the_run_on_the_board(agent: FakeAgent) -> None:
    agent.go.clear()
    line = Line(agent.info.address)
    running = asyncio.create_task(line.run())
    while not agent.runs:
        await asyncio.sleep(0.02)
    await asyncio.wait_for(line.runner.stop(TASK), 3)
    with pytest.raises(CancelledError):
        await running
    assert agent.stopped == 1 and line.troubles == 0
    await line.channel.close()


async def test_a_stop_before_the_call_keeps_the_call_from_being_made(
    agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line(agent.info.address)
    check = line.runner.check

    async def check_meanwhile() -> None:
        await line.runner.stop(TASK)
        await check()

    monkeypatch.setattr(line.runner, "check", check_meanwhile)
    with pytest.raises(CancelledError):
        await line.run()
    assert agent.runs == []
    await line.channel.close()


async def test_tls_shows_that_it_is_the_board_and_the_token_lets_us_in(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "b1.board")
    other_certificate, other_key = make_certificate(tmp_path, "b2.board")
    (tmp_path / "tokens").write_text(f"orchestrator {hashlib.sha256(b'sesame').hexdigest()} write\n")
    (tmp_path / "looks").write_text(f"orchestrator {hashlib.sha256(b'sesame').hexdigest()} read\n")
    (tmp_path / "token").write_text("sesame\n")
    ours = ChannelSettings(token_file=tmp_path / "token", tls_ca=tmp_path / "ca.crt")
    cases = (
        (ServerSettings(tls_cert=certificate, tls_key=key, tokens_file=tmp_path / "tokens"), ours, ""),
        (
            ServerSettings(tls_cert=certificate, tls_key=key, tokens_file=tmp_path / "tokens"),
            ChannelSettings(tls_ca=tmp_path / "ca.crt"),
            "DIAL_REFUSED",
        ),
        (ServerSettings(tls_cert=certificate, tls_key=key, tokens_file=tmp_path / "looks"), ours, "DIAL_REFUSED"),
        # The certificate of another board of the same lab, though it calls itself b1.
        (ServerSettings(tls_cert=other_certificate, tls_key=other_key), ours, "DIAL_WRONG_BOARD"),
        (ServerSettings(), ours, "DIAL_UNREACHABLE"),
    )
    for server, client, expected in cases:
        agent = await FakeAgent("b1", tmp_path).start(server)
        line = Line(agent.info.address, client)
        if expected:
            assert await line.reason() == expected
        else:
            assert (await line.run()).board.id == "b1"
        assert len(agent.runs) == (0 if expected else 1)
        await line.channel.close()
        await agent.stop()
