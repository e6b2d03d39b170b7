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


def test_sigint_stops_it_where_a_script_started_it_in_the_background_with_the_signal_ignored(tmp_path):
    code = (
        "import contextlib, os, signal, sys\n"
        f"sys.path.insert(0, {str(STACK.parent)!r})\n"
        "import stack\n"
        "@contextlib.contextmanager\n"
        "def running(_):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    yield\n"
        "stack.running = running\n"
        f"sys.argv[1:] = ['--state', {str(tmp_path)!r}]\n"
        "raise SystemExit(stack.main())\n"
    )
    words = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, code]
    assert subprocess.run(words, check=False, timeout=20).returncode == 0
