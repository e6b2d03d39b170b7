"""Dialled boards with real processes: orchestrators that die or stall over a call, and the lab's own secrets."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc, queue_pb2
from boardlift_servicekit import channels
from boardlift_servicekit.buckets import Bucket
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.messaging import connect, publish_task
from support.dial_lab import until
from support.fake_agent import FakeAgent
from support.stack import Process, Stack, running

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Stack]:
    made = Stack(tmp_path, orchestrators=2)
    made.services.clear()  # nobody but the board
    made.worker_ports.clear()
    with running(made) as started:
        yield started


@pytest.fixture
async def agent(pair: Stack, tmp_path: Path) -> AsyncIterator[FakeAgent]:
    """A board that registers with both orchestrators."""
    made = await FakeAgent("b1", tmp_path).start()
    opened = [channels.connect(f"127.0.0.1:{port}") for port in pair.orchestrator_ports]

    async def register(channel: Any) -> None:
        stub = job_pb2_grpc.BoardServiceStub(channel)
        state = board_agent_pb2.BoardState(in_rotation=True)
        request = job_pb2.RegisterBoardRequest(board=made.info, state=state)
        while True:
            try:
                await stub.RegisterBoard(request, timeout=2)
            except grpc.aio.AioRpcError as error:
                print("not registered:", error.code())
            await asyncio.sleep(1)

    tasks = [asyncio.create_task(register(channel)) for channel in opened]
    yield made
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for channel in opened:
        await channel.close()
    await made.stop()


class Queue:
    """Sends stages and hears of their ends."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.leases = Bucket(client, client.jetstream(), "LEASE")
        self.outcomes: list[tuple[str, bool]] = []

    async def listen(self) -> Queue:
        async def take(message: Any) -> None:
            outcome = queue_pb2.StageOutcome.FromString(message.data)
            if not outcome.started:
                self.outcomes.append((outcome.worker, outcome.HasField("result")))

        await self.client.subscribe("res.>", cb=take)
        return self

    async def send(self, place: str) -> None:
        request = board_agent_pb2.RunModelRequest(job_id="job", run_id="1")
        task = queue_pb2.StageTask(job_id="job", stage="board", attempt=1, board=request)
        await publish_task(self.client.jetstream(), task, place=place)

    async def dialler(self) -> int:
        """Process id of the orchestrator that holds the board's lease; 0 for nobody."""
        entry = await self.leases.get("dial.b1")
        return int(queue_pb2.BoardDial.FromString(entry.value).dialler.split("-")[-2]) if entry else 0


@pytest.fixture
async def queue(pair: Stack) -> AsyncIterator[Queue]:
    client = await connect(pair.nats_url, "test")
    yield await Queue(client).listen()
    await client.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_the_other_orchestrator_brings_the_call_to_its_end(
    pair: Stack, agent: FakeAgent, queue: Queue, number: signal.Signals
) -> None:
    agent.go.clear()
    await queue.send("pool.rdk-x5")
    await until(lambda: agent.runs, 30)
    first = await queue.dialler()
    assert first in [server.running.pid for server in pair.servers if server.running]
    os.kill(first, number)
    try:

        async def taken_over() -> bool:
            return await queue.dialler() not in (0, first)

        await until(taken_over, 30)
        agent.go.set()
        await until(lambda: queue.outcomes, 30)
    finally:
        if number == signal.SIGSTOP:
            os.kill(first, signal.SIGCONT)
    await asyncio.sleep(3)
    assert set(queue.outcomes) == {("b1", True)}  # a straggler may say the same again: its report is a duplicate
    assert len(agent.runs) == 1 and agent.stopped == 0
    assert await queue.dialler() != first
    state = (await queue.client.jetstream().stream_info("TASK", subjects_filter="task.board.>")).state
    assert not state.subjects


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    for words in (("init",), ("board", "x5-1"), ("board", "x5-2")):
        command = [sys.executable, str(ROOT / "deploy/make_secrets.py"), *words, "--dir", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def secured(folder: Path) -> dict[str, str]:
    """Settings of a server, or of a board that is dialled, with its identity in a folder."""
    names = {"tls_cert": "tls.crt", "tls_key": "tls.key", "tokens_file": "tokens", "token_file": "token"}
    return {f"BOARDLIFT_{name.upper()}": str(folder / file) for name, file in names.items()}


async def test_the_labs_secrets_let_the_orchestrator_in_and_show_the_right_board(tmp_path: Path, secrets: Path) -> None:
    authority = {"BOARDLIFT_TLS_CA": str(secrets / "ca.crt")}
    own = {
        **secured(secrets / "orchestrator"),
        **authority,
        "BOARDLIFT_DIAL_TOKENS": str(secrets / "orchestrator/dial"),
    }
    stack = Stack(tmp_path, settings={**own, "BOARDLIFT_TRANSFORM": "", "BOARDLIFT_COMPILER": ""})
    stack.services.clear()
    stack.worker_ports.clear()

    def board(name: str, identity: str) -> Process:
        settings = {
            "BOARDLIFT_BOARD_ID": name,
            "BOARDLIFT_MODE": "dial",
            "BOARDLIFT_LISTEN": "127.0.0.1:0",
            "BOARDLIFT_ORCHESTRATOR": f"localhost:{stack.orchestrator_ports[0]}",
            "BOARDLIFT_STATE_DIR": str(tmp_path / name),
            "BOARDLIFT_BOARD_ROOT": str(tmp_path),
            **authority,
            **secured(secrets / "boards" / identity),
            "BOARDLIFT_TOKEN_FILE": str(secrets / "boards" / name / "token"),
        }
        command = [sys.executable, "-m", "boardlift_board_agent"]
        return Process(command, settings, tmp_path / f"{name}.log")

    boards = [board("x5-1", "x5-1"), board("x5-2", "x5-1")]
    person = ChannelSettings(token_file=secrets / "users/admin/token", tls_ca=secrets / "ca.crt")
    channel = channels.connect(f"localhost:{stack.orchestrator_ports[0]}", person)
    try:
        with running(stack):
            for process in boards:
                process.start()
            stub = job_pb2_grpc.BoardServiceStub(channel)

            async def reasons() -> dict[str, set[str]]:
                found = (await stub.ListBoards(job_pb2.ListBoardsRequest(), timeout=10, wait_for_ready=True)).boards
                return {board.info.id: {finding.code for finding in board.state.findings} for board in found}

            wanted = {"x5-1": {"RUNTIME_MISSING"}, "x5-2": {"RUNTIME_MISSING", "DIAL_WRONG_BOARD"}}
            end = time.monotonic() + 120
            while (seen := await reasons()) != wanted:
                assert time.monotonic() < end, seen
                await asyncio.sleep(0.3)
            log = (tmp_path / "x5-1.log").read_text()
            assert '"principal": "orchestrator"' in log
    finally:
        for process in boards:
            process.kill()
        await channel.close()
