from __future__ import annotations

import os
import subprocess
import sys

import pytest

from boardlift.testing import FakeServer

COMMAND = [sys.executable, "-m", "boardlift.cli"]


@pytest.fixture
def served(boardlift, server, model, data):
    assert boardlift("run", model, "--data", data, "--gate", "cosine>=0.9", "--detach").code == 0
    assert boardlift("jobs", "watch", "job-1").code == 0
    return {**os.environ, "BOARDLIFT_SERVER": server.address}


def test_a_poor_encoding_prints_plain_signs(served):
    poor = {**served, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run([*COMMAND, "report", "job-1"], env=poor, capture_output=True, timeout=60, check=True)
    assert b">= 0.9 " in ended.stdout and b"?" not in ended.stdout


def test_a_closed_pipe_ends_as_a_shell_says_it(served):
    loud = subprocess.Popen([*COMMAND, "report", "job-1"], env=served, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    loud.stdout.close()  # as `| head -0` does: nobody reads
    _, errors = loud.communicate(timeout=60)
    assert loud.returncode == 141 and not errors


def test_json_that_nobody_reads_ends_the_same_way(served):
    loud = subprocess.Popen([*COMMAND, "jobs", "--json"], env=served, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    loud.stdout.close()
    _, errors = loud.communicate(timeout=60)
    assert loud.returncode == 141 and not errors


def test_grpc_adds_no_lines_of_its_own(tmp_path):
    with FakeServer() as server:
        wrong = {**os.environ, "BOARDLIFT_SERVER": f"https://{server.address}"}
        script = "import sys; from boardlift._entry import main; sys.argv = ['boardlift', 'doctor']; main()"
        ended = subprocess.run([sys.executable, "-c", script], env=wrong, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 3 and "it does not speak TLS" in ended.stdout and "ssl_transport" not in ended.stderr
