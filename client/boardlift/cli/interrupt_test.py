"""What SIGTERM does to a command that waits for a stage, against the fake server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from boardlift.testing import FakeServer, Scenario


def test_sigterm_stops_the_stage_on_the_server(model, data):
    with FakeServer(Scenario(step_s=30)) as server:
        names = ("BOARDLIFT_SERVER", "BOARDLIFT_TRANSFORM", "BOARDLIFT_COMPILER")
        process = subprocess.Popen(
            [sys.executable, "-m", "boardlift.cli", "compile", model, "--data", data],
            env={**os.environ, **dict.fromkeys(names, server.address)},
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not server.compiler.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 4 and "Stopped by SIGTERM" in err and "Traceback" not in err
        assert server.calls["CancelExecution"] == 1


def test_ctrl_c_while_modules_load_leaves_no_trace():
    code = "import sys, signal; sys.modules['boardlift.cli.__main__'] = None; from boardlift import _entry\n"
    code += "import builtins; old = builtins.__import__\n"
    code += "def load(name, *rest):\n    if name.startswith('boardlift.cli'): raise KeyboardInterrupt\n"
    code += "    return old(name, *rest)\nbuiltins.__import__ = load; _entry.main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 4 and ended.stderr == "error CANCELLED: Stopped by the keyboard.\n"
