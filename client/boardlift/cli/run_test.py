from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from boardlift.models import Failure
from boardlift.testing import FakeServer, Scenario, StageScript

GATES = ("--gate", "cosine>=0.99", "--gate", "max_abs<=0.2", "--gate", "estimated_latency_us<=500")


def test_pass_prints_the_verdict_with_kinds_files_and_the_command(boardlift, model, data):
    ended = boardlift("run", model, "--data", data, "--outputs", "actions", *GATES)
    assert ended.code == 0
    assert ended.out.startswith("PASS, best variant int16\npolicy.onnx -> rdk-x5  job job-1  ")
    assert "int8.bin" in ended.out and "boardlift report job-1 --html report.html" in ended.out
    assert "Reproduce:  boardlift" in ended.out
    figures = [line for line in ended.out.splitlines() if re.match(r" +(cosine|max_abs|estimated)", line)]
    assert len(figures) == 6 and all(" simulated " in line for line in figures)
    assert "compile int16 succeeded" in ended.err and "job job-1 succeeded" in ended.err


def test_json_is_one_object_and_nothing_else(boardlift, model, data):
    ended = boardlift("run", model, "--data", data, "--json", *GATES)
    assert ended.code == 0 and ended.err == ""
    assert ended.json["verdict"]["outcome"] == "pass" and ended.json["exit_code"] == 0
    assert ended.json["verdict"]["variants"][0]["gates"][0]["figure"]["kind"] == "simulated"


@pytest.mark.parametrize(
    ("gate", "code", "word"), [("cosine>=0.99999", 1, "FAIL"), ("board_p99_ms<=1", 5, "UNDECIDED")]
)
def test_exit_code_of_verdicts(boardlift, model, data, gate, code, word):
    ended = boardlift("run", model, "--data", data, "--gate", gate)
    assert ended.code == code and ended.out.startswith(word) and "Reasons:" in ended.out


@pytest.mark.parametrize(("user_fault", "code"), [(True, 2), (False, 3)])
def test_exit_code_by_whose_fault_it_is(monkeypatch, boardlift, model, data, user_fault, code):
    script = StageScript(failure_code="NO_GOOD", user_fault=user_fault)
    with FakeServer(Scenario(stages={"transform": script})) as server:
        ended = boardlift("run", model, "--data", data, "--server", server.address)
    assert ended.code == code
    assert "error NO_GOOD: The stage said no." in ended.err and "at: node_1" in ended.err and "remedy:" in ended.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--gate", "cosine>0.9"], "GATE_INVALID"),
        (["--variant", "Best"], "VARIANT_INVALID"),
        (["--input-shape", "obs=axb"], "SHAPE_INVALID"),
        (["--input", "obs"], "INPUT_FORMAT_INVALID"),
        (["--freeze", "sr"], "FREEZE_INVALID"),
        (["--freeze", "sr=NaN"], "FREEZE_INVALID"),
        (["--freeze", "sr=fast"], "FREEZE_INVALID"),
        (["--level", "O9"], "USAGE"),
        (["--board", "=x"], "LABEL_INVALID"),
    ],
)
def test_wrong_input_is_refused_with_code_and_remedy(boardlift, server, model, data, arguments, reason):
    ended = boardlift("run", model, "--data", data, *arguments)
    assert ended.code == 2 and f"error {reason}: " in ended.err and "remedy: " in ended.err
    assert "Traceback" not in ended.err and "CreateJob" not in server.calls
    again = boardlift("run", model, "--data", data, "--json", *arguments)
    assert again.code == 2 and again.json["error"]["code"] == reason and again.json["error"]["remedy"]


def test_missing_files_are_wrong_input(boardlift, model, tmp_path):
    assert boardlift("run", tmp_path / "no.onnx", "--data", tmp_path / "d.npz").code == 2
    assert "FILE_UNREADABLE" in boardlift("run", model, "--data", tmp_path / "d.npz").err
    assert "dataset steps" in boardlift("run", model, "--data", tmp_path / "log.jsonl").err


def test_every_option_arrives_on_the_server(boardlift, server, model, data):
    options = ["--variant", "a=int8,calibration=kl", "--variant", "int16", "--calibration", "max", "--level", "O2"]
    options += ["--input-shape", "obs=1x225", "--outputs", "actions,value", "--skip-pass", "fold-constants"]
    options += ["--freeze", "sr=16000", "--freeze", "state=[[0.5, 1]]"]
    options += ["--input", "image:type_train=rgb,type_rt=nv12,mean=1,2,3,scale=.5;-1;2"]
    options += ["--board", "lab=a", "--goal", "accuracy"]
    options += [
        "--no-board",
        "--name",
        "n",
        "--limit",
        "60",
        "--calibration-samples",
        "8",
        "--seed",
        "7",
        "--percentile",
        "0.99",
    ]
    assert boardlift("run", model, "--data", data, "--detach", *options).out == "job-1\n"
    spec = server.jobs.jobs["job-1"].job.spec
    assert [v.calibration.method for v in spec.variants] == ["kl", "max"]
    assert {v.compiler.optimize_level for v in spec.variants} == {"O2"}
    fed = spec.variants[0].inputs[0]
    assert list(fed.mean_value) == [1, 2, 3] and list(fed.scale_value) == [0.5, -1, 2]
    assert fed.type_rt == "nv12" and spec.variants[0].calibration.max_percentile == 0.99
    assert list(spec.transform.outputs) == ["actions", "value"] and list(spec.transform.skip_passes) == [
        "fold-constants"
    ]
    assert dict(spec.transform.frozen_inputs) == {"sr": "16000", "state": "[[0.5, 1]]"}
    assert spec.board.labels["lab"] == "a" and spec.goal == "accuracy" and spec.skip_board
    assert spec.limit_duration.seconds == 60 and spec.split.seed == 7 and spec.split.calibration_samples == 8


def test_plan_creates_nothing(boardlift, server, model, data):
    ended = boardlift("run", model, "--data", data, "--plan")
    assert ended.code == 0 and "1 transform passes would look" in ended.out and "No job was created" in ended.out
    assert not server.jobs.jobs
    assert boardlift("run", model, "--data", data, "--plan", "--json").json["variants"] == ["int16", "int8"]


def test_a_plan_says_what_helps_where_the_job_would_be_refused(boardlift, model, data, monkeypatch):
    no = Failure("OUTPUT_NOT_FOUND", "no value named x", remedy="choose from the outputs actions")
    plan = SimpleNamespace(passes=(), refusals=(no,), assumptions=())
    monkeypatch.setattr("boardlift.stages.StageClient.plan", lambda *_: plan)
    ended = boardlift("run", model, "--data", data, "--plan")
    assert ended.code == 2 and "exactness" not in ended.out
    assert "error OUTPUT_NOT_FOUND: no value named x\n    remedy: choose from the outputs actions\n" in ended.out


def test_an_unreachable_server_is_infrastructure(boardlift):
    ended = boardlift("doctor", "--server", "127.0.0.1:1")
    assert ended.code == 3 and "missing" in ended.out and "BOARDLIFT_SERVER" in ended.out


def start(server, model, data, *arguments, **options):
    env = {**os.environ, "BOARDLIFT_SERVER": server.address, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "boardlift.cli", "run", str(model), "--data", str(data), *arguments]
    return subprocess.Popen(command, env=env, **options)


def wait_for_job(server, deadline_s=20):
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if any(fake.events for fake in server.jobs.jobs.values()) and server.calls.get("WatchJob"):
            return
        time.sleep(0.02)
    raise AssertionError("no job came")


def test_after_the_timeout_the_job_goes_on_and_can_be_found(boardlift, model, data):
    with FakeServer(Scenario(step_s=60)) as server:
        words = ("run", model, "--data", data, "--timeout", "0.3", "--server", server.address)
        ended = boardlift(*words)
        assert ended.code == 5 and "remedy: Follow it: boardlift jobs watch job-1" in ended.err
        assert boardlift(*words, "--json").json["error"]["metadata"] == {"job": "job-2"}
        assert boardlift("jobs", "show", "job-1", "--json", "--server", server.address).json["state"] == "running"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_a_terminal_a_signal_cancels_the_job(model, data, number):
    with FakeServer(Scenario(step_s=60)) as server:
        process = start(server, model, data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_job(server)
        time.sleep(0.2)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 4 and "CANCELLED" in out and "Cancelling job-1" in err and "Traceback" not in err


def test_ctrl_c_stops_a_single_stage_on_the_server(model):
    with FakeServer(Scenario(step_s=3)) as server:
        env = {**os.environ, "BOARDLIFT_TRANSFORM": server.address, "BOARDLIFT_COMPILER": server.address}
        command = [sys.executable, "-m", "boardlift.cli", "check", str(model), "--server", server.address]
        process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 20
        while not server.calls.get("CheckModel") and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert len(server.server.cancelled) == 1
    assert process.returncode == 4 and "Stopped by the keyboard" in err and "Traceback" not in err


def read_until(terminal, text, seen="", deadline_s=20):
    end = time.monotonic() + deadline_s
    while text not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536).decode()
            except OSError:  # the other side has closed
                break
    return seen


@pytest.mark.parametrize(("answer", "code", "state"), [("detach\n", 5, "running"), ("cancel\n", 4, "cancelled")])
def test_on_a_terminal_ctrl_c_asks(model, data, answer, code, state):
    with FakeServer(Scenario(step_s=60)) as server:
        terminal, inside = pty.openpty()
        process = start(server, model, data, stdin=inside, stdout=inside, stderr=inside, start_new_session=True)
        os.close(inside)
        wait_for_job(server)
        seen = read_until(terminal, "▶")
        os.kill(process.pid, signal.SIGINT)
        seen = read_until(terminal, "[detach]", seen)
        os.write(terminal, answer.encode())
        seen = read_until(terminal, "CANCELLED" if code == 4 else "jobs watch", seen)
        assert process.wait(20) == code
        os.close(terminal)
        assert "ingest" in seen and server.jobs.jobs["job-1"].job.state
        words = {"running": 2, "cancelled": 6}
        assert server.jobs.jobs["job-1"].job.state == words[state]


def test_out_saves_the_files(boardlift, model, data, tmp_path):
    ended = boardlift("run", model, "--data", data, "--out", tmp_path / "result")
    assert ended.code == 0 and "saved 5 files" in ended.err
    assert {path.name for path in (tmp_path / "result").iterdir()} >= {"report.json", "report.html", "int8.bin"}
