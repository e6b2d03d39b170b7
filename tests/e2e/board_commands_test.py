"""`boardlift diagnose` and `boardlift lease` against the whole product: real toolchain and a simulated board."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boardlift import Client
from boardlift.v1 import job_pb2, transform_pb2

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/quadruped_policy"
BOARDLIFT = str(Path(sys.executable).parent / "boardlift")
pytestmark = [pytest.mark.toolchain, pytest.mark.slow, pytest.mark.timeout(800), pytest.mark.xdist_group("e2e")]


def load_stack() -> Any:
    spec = importlib.util.spec_from_file_location("boardlift_stack_for_boards", ROOT / "deploy/local/stack.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Lab:
    """A running stack and the command line that talks to it."""

    def __init__(self, stack: Any, folder: Path) -> None:
        self.folder = folder
        names = {"server": "orchestrator", "transform": "transform", "compiler": "compiler"}
        addresses = {f"BOARDLIFT_{k.upper()}": stack.address(v) for k, v in names.items()}
        self.environment = {**os.environ, **addresses}
        self.server, self.agent = stack.address("orchestrator"), stack.address("board-agent")

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        command = [BOARDLIFT, *(str(w) for w in words)]
        return subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    module = load_stack()
    made = module.Stack(tmp_path_factory.mktemp("state"), module.free_ports(), {})
    with module.running(made) as started:
        yield Lab(started, tmp_path_factory.mktemp("user"))


@pytest.fixture(scope="module")
def job(lab: Lab) -> str:
    model, data = lab.folder / "policy.onnx", lab.folder / "data.npz"
    subprocess.run([sys.executable, str(EXAMPLE / "build_policy.py"), "--out", str(model)], check=True)
    logs = sorted((EXAMPLE / "logs").iterdir())
    built = lab("dataset", "steps", *logs, "--out", data, "--calibration", 24, "--heldout", 8, "--synthetic")
    assert built.returncode == 0, built.stderr
    words = ("--outputs", "actions", "--variant", "int8", "--variant", "int16", "--json")
    ran = lab("run", model, "--data", data, *words)
    assert ran.returncode in (0, 1, 5), ran.stdout + ran.stderr
    found: str = json.loads(lab("jobs", "ls", "--json").stdout)[0]["id"]
    return found


def heldout(lab: Lab, job: str) -> dict[str, np.ndarray]:
    """The samples the board ran, as the user would pull them."""
    with Client(lab.server) as client:
        record = client._call(client._jobs.GetJob, job_pb2.GetJobRequest(job_id=job)).job
        stage = next(s for s in record.stages if s.stage == "transform")
        result = transform_pb2.TransformResult.FromString(client.fetch_bytes(stage.result.sha256))
        path = client.fetch(result.heldout.sha256, lab.folder / "heldout.npz")
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files if name != "dataset.json"}


def test_a_good_job_is_consistent_and_a_users_mistake_is_named(lab: Lab, job: str) -> None:
    fine = lab("diagnose", job, "--samples", 2, "--json")
    assert fine.returncode == 0, fine.stdout + fine.stderr
    plain = json.loads(fine.stdout)
    assert [d["cause"] for d in plain["diagnoses"]] == ["consistent"]
    dialled = lab("diagnose", job, "--samples", 2, "--agent", lab.agent, "--json")
    assert [d["cause"] for d in json.loads(dialled.stdout)["diagnoses"]] == ["consistent"]
    assert "BOARD_NOT_FOUND" in lab("diagnose", job, "--board", "nobody").stderr
    fed = {name: array * np.float32(255) for name, array in heldout(lab, job).items()}
    np.savez(lab.folder / "fed.npz", **fed)
    wrong = lab("diagnose", job, "--samples", 2, "--user-inputs", lab.folder / "fed.npz", "--variant", "int8")
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert wrong.stdout.splitlines()[0].startswith("int8 on simulated board sim-1")
    assert "input-not-divided-by-255  (user-code, confidence 0.99)  obs_4d" in wrong.stdout
    assert lab("diagnose", job, "--variant", "nope").returncode == 2


def test_a_lease_holds_the_board_for_a_command_and_gives_it_back(lab: Lab) -> None:
    inside = f"{BOARDLIFT} boards --json; exit 7"
    leased = lab("lease", "sim-1", "--for", "1m", "--holder", "ann", "--", "sh", "-c", inside)
    assert leased.returncode == 7, leased.stderr
    assert json.loads(leased.stdout)[0]["lease_holder"] == "ann"
    assert "is given back" in leased.stderr
    assert not json.loads(lab("boards", "--json").stdout)[0].get("lease_holder")


def test_a_lease_is_given_back_when_the_command_is_stopped(lab: Lab) -> None:
    command = [BOARDLIFT, "lease", "sim-1", "--for", "1m", "--", "sleep", "60"]
    process = subprocess.Popen(command, env=lab.environment, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 90
    while not json.loads(lab("boards", "--json").stdout)[0].get("lease_holder"):
        assert time.monotonic() < end
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 130
    assert not json.loads(lab("boards", "--json").stdout)[0].get("lease_holder")
    assert lab("lease", "sim-1", "--for", "soon").returncode == 2
    assert lab("lease", "nobody", "--for", "1m", "--", "true").returncode == 2
