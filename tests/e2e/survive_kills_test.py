"""The whole product with the real toolchain: a job survives `kill -9` of any one part, and a cancel leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from boardlift.v1 import compiler_pb2, job_pb2, job_pb2_grpc
from boardlift_servicekit import channels
from support import jobs

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/quadruped_policy"
SUCCEEDED = job_pb2.StageRecord.STATE_SUCCEEDED
pytestmark = [pytest.mark.toolchain, pytest.mark.slow, pytest.mark.timeout(800), pytest.mark.xdist_group("e2e")]


def load_stack() -> Any:
    """The script behind `make up`, as a module."""
    spec = importlib.util.spec_from_file_location("boardlift_local_stack", ROOT / "deploy/local/stack.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """The demo's policy and its dataset."""
    folder = tmp_path_factory.mktemp("inputs")
    model, data = folder / "policy.onnx", folder / "data.npz"
    subprocess.run([sys.executable, str(EXAMPLE / "build_policy.py"), "--out", str(model)], check=True)
    boardlift = str(Path(sys.executable).parent / "boardlift")
    logs = sorted(str(path) for path in (EXAMPLE / "logs").iterdir())
    words = ["--out", str(data), "--calibration", "24", "--heldout", "16", "--synthetic"]
    subprocess.run([boardlift, "dataset", "steps", *logs, *words], check=True, stdout=subprocess.DEVNULL)
    return model.read_bytes(), data.read_bytes()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    module = load_stack()
    environment = {"BOARDLIFT_ACK_WAIT": "5", "BOARDLIFT_HEARTBEAT": "1", "BOARDLIFT_SWEEP_EVERY": "5"}
    made = module.Stack(tmp_path_factory.mktemp("state"), module.free_ports(), environment)
    with module.running(made) as started:
        yield started


@pytest.fixture
async def channel(stack: Any) -> AsyncIterator[Any]:
    opened = channels.connect(stack.address("orchestrator"))
    yield opened
    await opened.close()


async def submit(
    channel: Any, folder: Path, inputs: tuple[bytes, bytes], percentile: float, method: str = "max", board: str = ""
) -> Any:
    """A job of one variant that no other test shares: its calibration percentile is its own."""
    model = await jobs.upload(channel, folder, inputs[0])
    variant = compiler_pb2.VariantSpec(
        name="v",
        preset="int8",
        purpose="preview",
        calibration=compiler_pb2.CalibrationSpec(method=method, max_percentile=percentile),
    )
    spec = job_pb2.JobSpec(
        dataset=await jobs.upload(channel, folder, inputs[1]),
        target="rdk-x5",
        variants=[variant],
        board_samples=2,
        bit_check_samples=1,
    )
    spec.model.artifact.CopyFrom(model)
    spec.transform.outputs.append("actions")
    spec.board.id = board
    spec.perf.frames = 20
    spec.perf.threads.append(1)
    return await jobs.create(channel, spec)


async def wait_until(channel: Any, job_id: str, stage: str, seconds: float = 240.0) -> None:
    """Return when a worker has begun the stage."""
    stub = job_pb2_grpc.JobServiceStub(channel)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job = (await stub.GetJob(job_pb2.GetJobRequest(job_id=job_id), timeout=10)).job
        assert job.state not in jobs.ENDED, job
        if any(item.stage == stage and item.worker and item.state != SUCCEEDED for item in job.stages):
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(stage)


def tools_of(stack: Any, name: str) -> list[psutil.Process]:
    """Vendor processes below a part: all but the warm starter that waits for the next run."""
    own = stack.processes[name].child.pid
    found = []
    for item in psutil.Process(own).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if item.ppid() != own or not any("fork_server" in word for word in item.cmdline()):
                found.append(item)
    return found


@pytest.mark.parametrize(
    ("victim", "stage", "percentile"),
    [
        ("orchestrator", "compile", 0.9990),
        ("compiler", "compile", 0.9991),
        ("nats", "compile", 0.9992),
        ("transform", "compile", 0.9993),
        ("board-agent", "board", 0.9994),
    ],
)
async def test_a_job_survives_the_death_of_any_one_part(
    stack: Any, channel: Any, inputs: tuple[bytes, bytes], tmp_path: Path, victim: str, stage: str, percentile: float
) -> None:
    job = await submit(channel, tmp_path, inputs, percentile)
    await wait_until(channel, job.id, stage)
    await asyncio.sleep(1.0)
    stack.kill(victim)
    await asyncio.sleep(0.5)
    stack.launch(victim)
    ended = await jobs.wait_ended(channel, job.id, timeout_s=240)
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED, ended
    assert all(item.state == SUCCEEDED for item in ended.stages)
    # What was finished before the kill was not done again: still the first attempt's result.
    order = [item.stage for item in ended.stages]
    before = [item for item in ended.stages if order.index(item.stage) < order.index(stage)]
    assert all(
        (item.attempt == 1 and not item.cached) or item.stage in ("ingest", "transform", "check") for item in before
    )


async def test_cancel_stops_the_vendor_compiler_within_seconds(
    stack: Any, channel: Any, inputs: tuple[bytes, bytes], tmp_path: Path
) -> None:
    job = await submit(channel, tmp_path, inputs, 0.0, "mix")  # the slowest calibration there is
    await wait_until(channel, job.id, "compile")
    waiting_since = time.monotonic()
    while not tools_of(stack, "compiler"):
        assert time.monotonic() - waiting_since < 120
        await asyncio.sleep(0.05)
    start = time.monotonic()
    await job_pb2_grpc.JobServiceStub(channel).CancelJob(job_pb2.CancelJobRequest(job_id=job.id), timeout=10)
    ended = await jobs.wait_ended(channel, job.id)
    while tools_of(stack, "compiler"):
        assert time.monotonic() - start < 12
        await asyncio.sleep(0.1)
    assert time.monotonic() - start < 12
    assert ended.state == job_pb2.Job.STATE_CANCELLED
