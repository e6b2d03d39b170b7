"""The program's start: wrong settings and an absent NATS are told in one line, with an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"BOARDLIFT_NATS_REPLICAS": "many"}, 2, "BOARDLIFT_NATS_REPLICAS"),
        ({"BOARDLIFT_NATS_REPLICAS": "9"}, 2, "between"),
        ({"BOARDLIFT_KEEP_JOBS": "-1"}, 2, "BOARDLIFT_KEEP_JOBS"),
        ({"BOARDLIFT_NATS": "nats://127.0.0.1:1", "BOARDLIFT_NATS_WAIT": "1"}, 3, "NATS_UNAVAILABLE"),
    ],
)
def test_exit_codes(tmp_path: Path, settings: dict[str, str], code: int, words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "BOARDLIFT_STATE_DIR": str(tmp_path), **settings}
    command = [sys.executable, "-m", "boardlift_orchestrator"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    last = done.stderr.splitlines()[-1]
    assert last.startswith("boardlift-orchestrator: ") and words in last and "Remedy" in last
    assert "Traceback" not in done.stderr


def test_help_names_the_settings_and_a_wrong_word_starts_nothing() -> None:
    for words, code in ((["--help"], 0), (["serve"], 2)):
        command = [sys.executable, "-m", "boardlift_orchestrator", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == code and "BOARDLIFT_DIAL_NETWORKS" in done.stdout
