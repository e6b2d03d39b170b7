"""Boards and the orchestrator over their real interfaces: registration, pulling, leases, deaths, cloned identities."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from boardlift.v1 import artifact_pb2, board_agent_pb2, job_pb2, job_pb2_grpc, queue_pb2
from boardlift_servicekit import channels
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from boardlift_servicekit.messaging import connect, publish_stop, publish_task
from support.nats_proxy import NatsProxy
from support.stack import Process, Stack, running

pytestmark = pytest.mark.toolchain
ROOT = Path(__file__).resolve().parents[2]
TOOLCHAIN = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
BUILDER = ROOT / "simulator/testdata/compile_models.py"
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def model() -> Path:
    folder = ROOT / ".boardlift/test-models" / hashlib.sha256(BUILDER.read_bytes()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "BOARDLIFT_TOOLCHAIN": str(TOOLCHAIN)}
    subprocess.run([sys.executable, str(BUILDER), str(folder), "policy8"], env=environment, check=True)
    return folder / "policy8" / "policy8.bin"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    bare = Stack(tmp_path_factory.mktemp("boards"))
    bare.services.clear()  # only NATS and the orchestrator: boards are the test's own
    bare.worker_ports.clear()
    with running(bare) as started:
        yield started


class Board(Process):
    """A board agent as a process."""

    def __init__(self, stack: Stack, folder: Path, name: str, **settings: str) -> None:
        root = folder / f"{name}-root"
        command = [str(BIN / "boardlift-simulated-board"), str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        values = {
            "board_id": name,
            "listen": "127.0.0.1:0",
            "state_dir": str(folder / name),
            "board_root": str(root),
            "hrt_model_exec": str(BIN / "boardlift-hrt-model-exec"),
            "toolchain": str(TOOLCHAIN),
            "orchestrator": stack.address,
            "nats": stack.nats_url,
            "min_free_disk_bytes": "1000000",
            **settings,
        }
        environment = {f"BOARDLIFT_{key.upper()}": value for key, value in values.items()}
        super().__init__([sys.executable, "-m", "boardlift_board_agent"], environment, folder / f"{name}.log")
        self.root = root


@pytest.fixture
def boards(stack: Stack, tmp_path: Path) -> Iterator[Callable[..., Board]]:
    made: list[Board] = []

    def make(name: str, **settings: str) -> Board:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Board(stack, folder, name, **settings))
        made[-1].start()
        return made[-1]

    yield make
    for board in made:
        board.kill()


class Lab:
    """What a test needs to talk to the orchestrator and the queue."""

    def __init__(self, channel: Any, client: Any, folder: Path) -> None:
        self.channel, self.client = channel, client
        self.stub = job_pb2_grpc.BoardServiceStub(channel)
        self.store = RemoteStore(channel, LocalStore(folder))
        self.outcomes: dict[tuple[str, int], queue_pb2.StageOutcome] = {}
        self.started: dict[tuple[str, int], str] = {}

    async def listen(self) -> None:
        async def take(message: Any) -> None:
            outcome = queue_pb2.StageOutcome.FromString(message.data)
            key = (outcome.job_id, outcome.attempt)
            if outcome.started:
                self.started[key] = outcome.worker
            else:
                self.outcomes[key] = outcome

        await self.client.subscribe("res.>", cb=take)

    async def boards(self) -> dict[str, job_pb2.Board]:
        answer = await self.stub.ListBoards(job_pb2.ListBoardsRequest(), timeout=10)
        return {board.info.id: board for board in answer.boards if board.online}

    async def send(
        self, model: artifact_pb2.ArtifactRef, place: str, attempt: int = 1, job: str = ""
    ) -> tuple[str, int]:
        name = job or f"job-{uuid.uuid4().hex[:8]}"
        request = board_agent_pb2.RunModelRequest(
            run_id=f"{name}-{attempt}",
            job_id=name,
            compiled_model=model,
            perf=board_agent_pb2.PerfSpec(frames=200, threads=[1]),
        )
        task = queue_pb2.StageTask(job_id=name, stage="board", variant="int8", attempt=attempt, board=request)
        await publish_task(self.client.jetstream(), task, place=place)
        return name, attempt

    async def outcome(self, key: tuple[str, int], wait_s: float = 120) -> queue_pb2.StageOutcome:
        await until(lambda: key in self.outcomes, wait_s)
        return self.outcomes[key]


async def until(condition: Callable[[], Any], wait_s: float = 90) -> None:
    end = time.monotonic() + wait_s
    while True:
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.1)


@pytest.fixture
async def lab(stack: Stack, tmp_path: Path) -> AsyncIterator[Lab]:
    channel, client = channels.connect(stack.address), await connect(stack.nats_url, "test")
    made = Lab(channel, client, tmp_path / "client")
    await made.listen()
    yield made
    await client.close()
    await channel.close()


async def online(lab: Lab, *names: str) -> None:
    async def there() -> bool:
        return set(names) <= set(await lab.boards())

    await until(there)


async def test_a_board_registers_pulls_a_task_and_leaves_cleanly(lab: Lab, boards: Any, model: Path) -> None:
    board = boards("q-one", labels="place=shelf,fan=yes")
    await online(lab, "q-one")
    shown = (await lab.boards())["q-one"]
    assert shown.info.simulated
    assert dict(shown.info.labels) == {"place": "shelf", "fan": "yes"}
    assert shown.state.in_rotation
    reference = await lab.store.put_file(model, "application/octet-stream")
    for place in ("id.q-one", "pool.rdk-x5"):
        outcome = await lab.outcome(await lab.send(reference, place))
        assert outcome.worker == "q-one"
        assert not outcome.HasField("failure")
        result = board_agent_pb2.RunResult.FromString((await lab.store.fetch(outcome.result)).read_bytes())
        assert result.latency[0].threads == 1
        assert result.board.id == "q-one"
    board.kill(signal.SIGTERM)
    assert "q-one" not in await lab.boards()


async def test_a_dead_boards_task_goes_to_another_board(lab: Lab, boards: Any, model: Path) -> None:
    dying = boards("q-dies", simulator_sick="hanging")
    await online(lab, "q-dies")
    reference = await lab.store.put_file(model, "application/octet-stream")
    key = await lab.send(reference, "pool.rdk-x5")
    await until(lambda: lab.started.get(key) == "q-dies")
    boards("q-lives")
    await online(lab, "q-lives")
    dying.kill()
    outcome = await lab.outcome(key)
    assert outcome.worker == "q-lives"
    assert not outcome.HasField("failure")


async def test_a_stopped_task_is_cancelled_and_the_board_is_free(lab: Lab, boards: Any, model: Path) -> None:
    boards("q-stop", simulator_sick="hanging")
    await online(lab, "q-stop")
    reference = await lab.store.put_file(model, "application/octet-stream")
    key = await lab.send(reference, "id.q-stop")
    await until(lambda: key in lab.started)

    async def busy() -> bool:
        return bool((await lab.boards())["q-stop"].state.busy_job == key[0])

    await until(busy)
    begun = time.monotonic()
    await publish_stop(lab.client, queue_pb2.StopStage(job_id=key[0]))
    outcome = await lab.outcome(key)
    assert outcome.cancelled
    assert time.monotonic() - begun < 15


async def test_a_lease_keeps_jobs_away_until_it_is_given_back(lab: Lab, boards: Any, model: Path) -> None:
    boards("q-lease")
    await online(lab, "q-lease")
    granted = await lab.stub.GrantBoardLease(
        job_pb2.GrantBoardLeaseRequest(board_id="q-lease", holder="ann"), timeout=10
    )
    await asyncio.sleep(0.5)
    reference = await lab.store.put_file(model, "application/octet-stream")
    key = await lab.send(reference, "id.q-lease")
    await asyncio.sleep(3)
    assert key not in lab.started
    assert (await lab.boards())["q-lease"].state.lease_holder == "ann"
    released = job_pb2.ReleaseBoardLeaseRequest(board_id="q-lease", lease_id=granted.lease_id)
    await lab.stub.ReleaseBoardLease(released, timeout=10)
    assert (await lab.outcome(key)).worker == "q-lease"


async def test_a_cloned_identity_is_noticed_and_takes_no_work(lab: Lab, boards: Any) -> None:
    boards("q-twin")
    await online(lab, "q-twin")
    first = (await lab.boards())["q-twin"].info.boot_id
    clone = boards("q-twin")
    await until(lambda: "BOARD_ID_IN_USE" in clone.log.read_text())
    assert (await lab.boards())["q-twin"].info.boot_id == first


async def test_a_hot_board_leaves_rotation_and_comes_back(lab: Lab, boards: Any, model: Path) -> None:
    board = boards("q-hot")
    await online(lab, "q-hot")

    async def state(wanted: bool) -> bool:
        return bool((await lab.boards())["q-hot"].state.in_rotation == wanted)

    heat(board, "hot")
    await until(lambda: state(False))
    findings = {f.code for f in (await lab.boards())["q-hot"].state.findings}
    assert "TOO_HOT" in findings
    reference = await lab.store.put_file(model, "application/octet-stream")
    key = await lab.send(reference, "id.q-hot")
    await asyncio.sleep(1.5)
    assert key not in lab.started
    heat(board, "")
    assert (await lab.outcome(key)).worker == "q-hot"


async def test_a_killed_board_comes_back_at_once_and_is_no_clone(lab: Lab, boards: Any) -> None:
    board = boards("q-back")
    await online(lab, "q-back")
    board.kill()
    board.start()
    await asyncio.sleep(3)
    assert "BOARD_ID_IN_USE" not in board.log.read_text()
    assert "q-back" in await lab.boards()


async def test_a_board_whose_queue_is_closed_for_good_ends_instead_of_looking_well(
    lab: Lab, boards: Any, stack: Stack
) -> None:
    async with NatsProxy(stack.nats_port) as queue:
        board = boards("q-shut", nats=queue.url)
        await until(lambda: "pulling" in board.log.read_text())
        queue.say("-ERR 'User Authentication Expired'")  # what a server says when credentials have run out
        process = board.running
        await until(lambda: process.poll() is not None)
    assert process.returncode == 3
    assert "NATS_CLOSED" in board.log.read_text()
    assert "q-shut" not in await lab.boards()


def heat(board: Board, sick: str) -> None:
    command = [str(BIN / "boardlift-simulated-board"), str(board.root)]
    environment = {**os.environ, "BOARDLIFT_SIMULATOR_SICK": sick}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
