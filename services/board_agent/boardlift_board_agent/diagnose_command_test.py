"""The command line diagnosis on the user's own files, as a process on a simulated board."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.toolchain


def test_a_users_own_files_are_diagnosed_without_a_server(start_agent, materials, tmp_path) -> None:
    agent = start_agent()
    agent.stop()
    item = materials["policy8"]
    sample = {name: array[:1] for name, array in item.samples.items()}
    np.savez(tmp_path / "samples.npz", **sample)
    np.savez(tmp_path / "reference.npz", **{n: a[:1] for n, a in item.reference.items()})
    np.savez(tmp_path / "fed.npz", **{n: a * np.float32(255) for n, a in sample.items()})
    base = [sys.executable, "-m", "boardlift_board_agent", "diagnose", "--model", str(item.model), "--samples",
            str(tmp_path / "samples.npz"), "--reference", str(tmp_path / "reference.npz")]  # fmt: skip

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*base, *words], env=agent.environment, capture_output=True, text=True, timeout=120)

    fine = run()
    assert fine.returncode == 0, fine.stdout + fine.stderr
    assert fine.stdout.startswith("consistent")
    wrong = run("--user-inputs", str(tmp_path / "fed.npz"), "--json")
    assert wrong.returncode == 1, wrong.stderr
    assert json.loads(wrong.stdout)[0]["cause"] == "input-not-divided-by-255"
    missing = run("--calibration", str(tmp_path / "nothing.npz"))
    assert missing.returncode == 2
    assert "FILE_MISSING" in missing.stderr
