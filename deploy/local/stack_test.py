"""What keeps the local stack from starting is said in one line; two stacks never share their state."""

from __future__ import annotations

import fcntl
import socket
import subprocess
import sys
from pathlib import Path

STACK = Path(__file__).with_name("stack.py")


def start(*words):
    return subprocess.run([sys.executable, str(STACK), *map(str, words)], check=False, capture_output=True, text=True)


def test_a_port_in_use_is_named_with_its_part(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        ended = start("--state", tmp_path, "--port", port - 1)
    assert ended.returncode == 3 and ended.stdout.count("\n") == 1
    assert f"{port} (transform)" in ended.stderr and "make up PORT=" in ended.stderr


def test_a_second_stack_on_the_same_state_is_refused_and_forgets_nothing(tmp_path):
    (tmp_path / "orchestrator").mkdir()
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = start("--state", tmp_path, "--fresh", "--port", 1)
    assert ended.returncode == 3 and "a stack already runs on" in ended.stderr
    assert (tmp_path / "orchestrator").is_dir()
