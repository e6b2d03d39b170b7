import json
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

from boardlift_transform.build_test_models import elu_policy


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.onnx"
    onnx.save(elu_policy(), str(path))
    return path


def run(*arguments: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "boardlift_transform.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def test_explain_says_what_and_why_and_changes_nothing(policy: Path) -> None:
    before = policy.read_bytes()
    code, text = run("explain", policy, "--outputs", "actions")
    assert code == 0
    assert "lift-to-4d" in text and "calibrator" in text and "obs: dimension 0 (batch) = 1" in text
    assert policy.read_bytes() == before
    code, text = run("explain", policy, "--outputs", "actions", "--json")
    steps = json.loads(text)["passes"]
    assert steps[0]["id"] == "fix-dynamic-dims" and steps[0]["dry_run"]["applied"]


def test_apply_writes_the_model_and_prints_the_proof(policy: Path, tmp_path: Path) -> None:
    out = tmp_path / "x5.onnx"
    code, text = run("apply", policy, "--outputs", "actions", "-o", out, "--snippet")
    assert code == 0 and "obs_4d" in text and "def run_policy" in text and "equal" in text
    assert onnx.load(str(out)).ir_version == 7
    code, text = run("apply", policy, "--json")
    assert json.loads(text)["equivalence"][0]["kind"] == "measured"


def test_inspect_and_passes(policy: Path) -> None:
    assert run("inspect", policy)[0] == 0
    assert json.loads(run("inspect", policy, "--json")[1])["operators"]["Gemm"] == 5
    assert "split-wide-head" in run("passes")[1]


def test_exit_codes(policy: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(policy.read_bytes()[:1000])
    code, text = run("apply", broken)
    assert code == 1 and "MODEL_CORRUPT" in text
    code, text = run("apply", policy, "--outputs", "torque", "--json")
    assert code == 1 and json.loads(text)["refusals"][0]["reason"] == "OUTPUT_NOT_FOUND"
    assert run("apply", policy, "--input-shape", "obs")[0] == 2
    assert run("apply", tmp_path / "absent.onnx")[0] == 2


def test_a_result_that_cannot_be_written_is_said_and_leaves_nothing(policy: Path, tmp_path: Path) -> None:
    assert run("apply", policy, "-o", tmp_path / "absent" / "x.onnx")[0] == 2
    folder = tmp_path / "taken.onnx.partial"
    folder.mkdir()
    code, text = run("apply", policy, "-o", tmp_path / "taken.onnx")
    assert code == 1 and "OUT_NOT_WRITABLE" in text and not (tmp_path / "taken.onnx").exists()


def test_explaining_a_small_model_is_quick(policy: Path) -> None:
    from click.testing import CliRunner

    from boardlift_transform.cli import main

    CliRunner().invoke(main, ["explain", str(policy)])
    start = time.monotonic()
    assert CliRunner().invoke(main, ["explain", str(policy)]).exit_code == 0
    assert time.monotonic() - start < 1.0


def test_diff_shows_nodes_per_pass_and_steps_are_kept(policy: Path, tmp_path: Path) -> None:
    for command in ("explain", "apply"):
        code, text = run(command, policy, "--outputs", "actions", "--diff")
        assert code == 0 and "~ " in text and "operator Gemm -> Conv" in text and "(made by lift-to-4d)" in text
    code, text = run("apply", policy, "--diff", "--json", "--keep-steps", tmp_path / "steps")
    diffs = [step["diff"] for step in json.loads(text)["passes"]]
    assert code == 0 and any(d["rewritten"] for d in diffs)
    assert (tmp_path / "steps/00-original.onnx").exists()
