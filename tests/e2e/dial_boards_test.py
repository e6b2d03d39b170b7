"""Boards that are dialled, with the whole product: real toolchain, two orchestrators, two simulated boards.

The boards have no connection to NATS: what reaches them, the orchestrators have brought.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc
from boardlift_servicekit import channels
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from e2e.board_commands_test import BOARDLIFT
from e2e.survive_kills_test import inputs, load_stack, submit, tools_of, wait_until  # noqa: F401
from support import jobs
from support.stack import Process, free_port

pytestmark = [pytest.mark.toolchain, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("e2e")]
PERCENTILE = 0.9971
"""Of this file's own jobs: they are compiled once, and measured each."""


class Lab:
    """The local stack with its board dialled, a second orchestrator and further boards."""

    def __init__(self, stack: Any, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        arguments, environment = stack._command("orchestrator")
        second = {"BOARDLIFT_LISTEN": f"127.0.0.1:{free_port()}", "BOARDLIFT_TRANSFORM": "", "BOARDLIFT_COMPILER": ""}
        self.second = Process(arguments, {**environment, **stack.environment, **second}, folder / "second.log")
        self.boards: dict[str, Process] = {}

    def board(self, name: str, **settings: str) -> Process:
        arguments, environment = self.stack._command("board-agent")
        own = {
            "BOARDLIFT_BOARD_ID": name,
            "BOARDLIFT_STATE_DIR": str(self.folder / name),
            "BOARDLIFT_LISTEN": f"127.0.0.1:{free_port()}",
            **settings,
        }
        made = Process(arguments, {**environment, **self.stack.environment, **own}, self.folder / f"{name}.log")
        self.boards[name] = made
        made.start()
        return made

    def command(self, *words: str, good: tuple[int, ...] = (0,)) -> str:
        server = ("--server", self.stack.address("orchestrator"))
        done = subprocess.run([BOARDLIFT, *server, *words], capture_output=True, text=True)
        assert done.returncode in good, done.stderr
        return done.stdout

    def seen(self) -> dict[str, Any]:
        return {board["id"]: board for board in json.loads(self.command("boards", "ls", "--json"))}

    def runs(self, name: str) -> int:
        """Runs that the board has finished."""
        folder = self.stack.state / "board-agent" if name == "sim-1" else self.folder / name
        return len(list((folder / "results").glob("*.pb")))

    async def until_fit(self, *names: str) -> None:
        end = time.monotonic() + 120
        while True:
            seen = await asyncio.to_thread(self.seen)
            if all(name in seen and seen[name].get("online") and seen[name].get("in_rotation") for name in names):
                return
            assert time.monotonic() < end, seen
            await asyncio.sleep(0.3)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    module = load_stack()
    environment = {
        "BOARDLIFT_MODE": "dial",
        "BOARDLIFT_ACK_WAIT": "5",
        "BOARDLIFT_HEARTBEAT": "1",
        "BOARDLIFT_SWEEP_EVERY": "5",
    }
    stack = module.Stack(tmp_path_factory.mktemp("state"), module.free_ports(), environment)
    with module.running(stack) as started:
        made = Lab(started, tmp_path_factory.mktemp("more"))
        made.second.start()
        try:
            made.board("sim-2")
            yield made
        finally:
            for process in (*made.boards.values(), made.second):
                process.kill()


@pytest.fixture
async def channel(lab: Lab) -> AsyncIterator[Any]:
    opened = channels.connect(lab.stack.address("orchestrator"))
    yield opened
    await opened.close()


def board_stage(job: Any) -> Any:
    return next(stage for stage in job.stages if stage.stage == "board")


async def test_jobs_pass_through_dialled_boards_each_stage_once(
    lab: Lab,
    channel: Any,
    inputs: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    await lab.until_fit("sim-1", "sim-2")
    assert {board["mode"] for board in lab.seen().values()} == {"dial"}
    first = await submit(channel, tmp_path, inputs, PERCENTILE)
    await jobs.wait_ended(channel, first.id, timeout_s=200)
    before = lab.runs("sim-1") + lab.runs("sim-2")
    made = [await submit(channel, tmp_path, inputs, PERCENTILE) for _ in range(4)]
    for job in made:
        ended = await jobs.wait_ended(channel, job.id, timeout_s=120)
        assert ended.state == job_pb2.Job.STATE_SUCCEEDED, ended
        stage = board_stage(ended)
        assert stage.attempt == 1 and not stage.cached and stage.worker in ("sim-1", "sim-2")
    assert lab.runs("sim-1") + lab.runs("sim-2") == before + 4
    log = (lab.stack.state / "logs/board-agent.log").read_text()
    assert '"event": "pulling"' not in log
    words = ("diagnose", first.id, "--board", "sim-2", "--samples", "1", "--json")
    diagnosis = json.loads(lab.command(*words, good=(0, 1)))  # whatever it finds, sim-2 has looked
    assert diagnosis["diagnoses"] and diagnosis["board"]["id"] == "sim-2"


async def test_a_board_killed_in_the_middle_loses_the_stage_to_the_other(
    lab: Lab,
    channel: Any,
    inputs: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    await lab.until_fit("sim-1", "sim-2")
    lab.boards["sim-2"].kill(15)  # so that it is sim-1 that begins
    job = await submit(channel, tmp_path, inputs, PERCENTILE)
    await wait_until(channel, job.id, "board")
    lab.stack.kill("board-agent")
    lab.boards["sim-2"].start()
    ended = await jobs.wait_ended(channel, job.id, timeout_s=120)
    lab.stack.launch("board-agent")
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED, ended
    assert board_stage(ended).worker == "sim-2"


async def test_the_only_board_killed_in_the_middle_is_waited_for(
    lab: Lab,
    channel: Any,
    inputs: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    await lab.until_fit("sim-1", "sim-2")
    lab.boards["sim-2"].kill(15)
    job = await submit(channel, tmp_path, inputs, PERCENTILE)
    await wait_until(channel, job.id, "board")
    lab.stack.kill("board-agent")
    await asyncio.sleep(18)  # until it counts as gone
    assert not (await asyncio.to_thread(lab.seen))["sim-1"].get("online")
    lab.stack.launch("board-agent")
    ended = await jobs.wait_ended(channel, job.id, timeout_s=120)
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED, ended
    assert board_stage(ended).worker == "sim-1"
    lab.boards["sim-2"].start()


async def test_an_orchestrator_killed_in_the_middle_neither_loses_nor_doubles_the_run(
    lab: Lab,
    channel: Any,
    inputs: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    await lab.until_fit("sim-1", "sim-2")
    before = lab.runs("sim-1") + lab.runs("sim-2")
    job = await submit(channel, tmp_path, inputs, PERCENTILE)
    await wait_until(channel, job.id, "board")
    killed = time.time()
    lab.stack.kill("orchestrator")
    lab.second.kill()  # whichever holds the board's lease
    lab.stack.launch("orchestrator")
    lab.second.start()
    ended = await jobs.wait_ended(channel, job.id, timeout_s=120)
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED, ended
    stage = board_stage(ended)
    assert stage.attempt == 1
    stored = await RemoteStore(channel, LocalStore(tmp_path / "store")).fetch(stage.result)
    result = board_agent_pb2.RunResult.FromString(stored.read_bytes())
    assert result.execution.start_time.ToNanoseconds() / 1e9 < killed  # joined, not begun anew
    assert lab.runs("sim-1") + lab.runs("sim-2") == before + 1


async def test_the_queue_killed_in_the_middle_is_only_an_interruption(
    lab: Lab,
    channel: Any,
    inputs: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    await lab.until_fit("sim-1", "sim-2")
    before = lab.runs("sim-1") + lab.runs("sim-2")
    job = await submit(channel, tmp_path, inputs, PERCENTILE)
    await wait_until(channel, job.id, "board")
    lab.stack.kill("nats")
    await asyncio.sleep(0.5)
    lab.stack.launch("nats")
    ended = await jobs.wait_ended(channel, job.id, timeout_s=120)
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED, ended
    assert lab.runs("sim-1") + lab.runs("sim-2") == before + 1


async def test_a_cancel_stops_the_dialled_boards_tool_within_seconds(
    lab: Lab,
    channel: Any,
    inputs: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    await lab.until_fit("sim-1", "sim-2")
    lab.boards["sim-2"].kill(15)
    job = await submit(channel, tmp_path, inputs, PERCENTILE)
    await wait_until(channel, job.id, "board")
    while not tools_of(lab.stack, "board-agent"):
        await asyncio.sleep(0.05)
    start = time.monotonic()
    await job_pb2_grpc.JobServiceStub(channel).CancelJob(job_pb2.CancelJobRequest(job_id=job.id), timeout=10)
    ended = await jobs.wait_ended(channel, job.id)
    while tools_of(lab.stack, "board-agent"):
        assert time.monotonic() - start < 12
        await asyncio.sleep(0.05)
    assert time.monotonic() - start < 12
    assert ended.state == job_pb2.Job.STATE_CANCELLED
    lab.boards["sim-2"].start()


async def test_a_wrong_board_behind_the_address_is_refused_and_named(
    lab: Lab,
    channel: Any,
    inputs: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    lab.board("lost", BOARDLIFT_DIAL_ADDRESS=lab.stack.address("board-agent"))
    end = time.monotonic() + 90
    while "DIAL_WRONG_BOARD" not in json.dumps(lab.seen().get("lost")):
        assert time.monotonic() < end
        await asyncio.sleep(0.3)
    shown = lab.command("boards", "show", "lost")
    assert "out of rotation: DIAL_WRONG_BOARD" in shown and "sim-1" in shown
    before = lab.runs("sim-1")
    job = await submit(channel, tmp_path, inputs, PERCENTILE, board="lost")
    await asyncio.sleep(8)
    state = (await job_pb2_grpc.JobServiceStub(channel).GetJob(job_pb2.GetJobRequest(job_id=job.id), timeout=10)).job
    assert state.state not in jobs.ENDED and not board_stage(state).worker
    assert lab.runs("sim-1") == before
    assert "DIAL_WRONG_BOARD" in (lab.folder / "lost.log").read_text()
    lost = lab.boards["lost"]
    lost.kill(15)
    lost.environment["BOARDLIFT_DIAL_ADDRESS"] = ""
    lost.start()
    ended = await jobs.wait_ended(channel, job.id, timeout_s=60)
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED and board_stage(ended).worker == "lost"
