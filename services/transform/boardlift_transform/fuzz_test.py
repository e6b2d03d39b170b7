"""Damaged models end in a named refusal or an equal result; `make nightly` style runs set BOARDLIFT_FUZZ to 10000."""

import json
import os
import subprocess
import sys

import pytest

COUNT = int(os.environ.get("BOARDLIFT_FUZZ", "300"))


@pytest.mark.timeout(60 + COUNT)
def test_damaged_models_never_crash_hang_or_lie() -> None:
    command = [sys.executable, "-m", "boardlift_transform.fuzz_transform", str(COUNT), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout)
    outcomes.pop("seconds")
    assert sum(outcomes.values()) == COUNT
    assert outcomes["equal"] > COUNT // 20, "the damage is too coarse to test anything"
