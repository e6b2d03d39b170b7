"""The other commands, each for people and for programs."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from boardlift.cli.app import app
from boardlift.cli.compare import compare_jobs
from boardlift.datasets import Dataset, write_dataset
from boardlift.models import Figure, Gate, GateResult, JobInfo, VariantVerdict, Verdict
from boardlift.testing import FakeServer, Scenario, StageScript


@pytest.fixture
def job(boardlift, model, data):
    assert boardlift("run", model, "--data", data, "--name", "demo", "--gate", "cosine>=0.99").code == 0
    return "job-1"


def test_jobs_lists_shows_and_prints_logs(boardlift, job):
    listed = boardlift("jobs")
    assert listed.out.splitlines()[0].split() == ["job", "state", "verdict", "best", "model", "created", "took", "name"]
    assert listed.out.splitlines()[1].split()[:4] == ["job-1", "succeeded", "pass", "int16"]
    assert boardlift("jobs", "ls", "--state", "failed", "--json").json == []
    shown = boardlift("jobs", "show", job)
    assert "simulate   int8     succeeded" in shown.out and "PASS" in shown.out
    assert boardlift("jobs", "show", job, "--json").json["id"] == job
    assert boardlift("jobs", "watch", job).code == 0
    events = [json.loads(line) for line in boardlift("jobs", "watch", job, "--json").out.splitlines()]
    assert events[-1]["job"]["state"] == "succeeded"


def test_logs_by_stage_and_variant(boardlift, model, data):
    scenario = Scenario(stages={"compile": StageScript(lines=("calibrating",))})
    with FakeServer(scenario) as server:
        boardlift("run", model, "--data", data, "--server", server.address)
        ended = boardlift("jobs", "logs", "job-1", "--variant", "int8", "--server", server.address)
        assert ended.out == "[compile int8] calibrating\n"
        assert boardlift("jobs", "logs", "job-1", "--json", "--server", server.address).out.count("\n") == 2


@pytest.mark.parametrize(("option", "there"), [("--stage", "ingest, transform"), ("--variant", "int16, int8")])
def test_logs_of_what_the_job_does_not_have_are_refused(boardlift, job, option, there):
    ended = boardlift("jobs", "logs", job, option, "nope")
    assert ended.code == 2 and f"Invalid value for {option}: job {job} has {there}" in ended.err


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--size", "128", "--size can't be '128'"),
        ("--mean", "1,a", "--mean can't be '1,a'"),
        ("--scale", "x", "--scale can't be 'x'"),
    ],
)
def test_the_option_that_cannot_be_read_is_the_one_that_is_named(boardlift, tmp_path, option, text, said):
    given = {"--size": "2x2", option: text}
    options = [word for pair in given.items() for word in pair]
    ended = boardlift("dataset", "images", tmp_path, "--input", "x", "-o", tmp_path / "i.npz", *options)
    assert ended.code == 2 and said in ended.err and "remedy: Write " in ended.err


def test_cancel_and_unknown_jobs(boardlift, model, data):
    with FakeServer(Scenario(step_s=60)) as server:
        boardlift("run", model, "--data", data, "--detach", "--server", server.address)
        ended = boardlift("jobs", "cancel", "job-1", "--server", server.address)
        assert ended.code == 0 and ended.out.startswith("job-1 cancel")
        assert boardlift("jobs", "watch", "job-1", "--server", server.address).code == 4
        assert boardlift("jobs", "cancel", "job-1", "--json", "--server", server.address).json[0]["id"] == "job-1"
    missing = boardlift("jobs", "show", "nope")
    assert missing.code == 2 and "error JOB_NOT_FOUND" in missing.err


def test_clone(boardlift, server, job):
    ended = boardlift("jobs", "clone", job, "--gate", "cosine>=0.99999", "--name", "stricter")
    assert ended.code == 1 and "FAIL" in ended.out and "stricter" in ended.out
    assert boardlift("jobs", "clone", job, "--detach").out == "job-3\n"
    assert boardlift("jobs", "clone", job, "--variant", "Bad").code == 2


def test_boards(boardlift):
    assert boardlift("boards").out == (
        "board    target  kind       mode  status  can                    labels\n"
        "fake-x5  rdk-x5  simulated  pull  free    model_info infer perf  lab=test\n"
    )
    assert boardlift("boards", "--label", "lab=none", "--json").json == []
    assert boardlift("boards", "--label", "lab=none").err == "No board has lab=none. All of them: boardlift boards\n"
    assert boardlift("boards", "ls", "--json").json[0]["simulated"] is True
    assert "a stand-in, not silicon" in boardlift("boards", "show", "fake-x5").out
    assert boardlift("boards", "show", "none").code == 2


def test_a_damaged_dataset_is_named_by_its_file_before_it_is_sent(boardlift, server, model, tmp_path):
    (tmp_path / "cut.npz").write_text("PK")
    ended = boardlift("run", model, "--data", tmp_path / "cut.npz")
    assert ended.code == 2 and "DATASET_UNREADABLE" in ended.err and "cut.npz" in ended.err
    assert "CreateJob" not in server.calls


def test_an_unknown_command_names_the_likely_ones(boardlift):
    assert "No such command 'status'. Did you mean 'jobs show'?" in boardlift("status").err
    assert "'report'" in boardlift("reprot").err and "'cancel'" in boardlift("jobs", "cancle").err
    assert boardlift("status").code == 2 and "Did you mean" not in boardlift("zzz").err


def test_a_board_that_is_gone_is_forgotten(boardlift, server):
    refused = boardlift("boards", "rm", "fake-x5")
    assert refused.code == 2 and "BOARD_ONLINE" in refused.err
    server.boards.boards[0].online = False
    assert boardlift("boards", "rm", "fake-x5").out == "fake-x5 removed\n"
    assert boardlift("boards", "ls", "--json").json == []
    assert boardlift("boards", "rm", "fake-x5").code == 2


def test_a_job_says_what_its_board_stage_waits_for(boardlift, server, job):
    server.jobs.jobs[job].job.stages.add(stage="board", variant="int8", note="waiting for a board: b is offline")
    assert "board int8: waiting for a board: b is offline" in boardlift("jobs", "show", job).out


def test_a_running_job_is_not_removed_and_that_is_for_the_user_to_change(boardlift, model, data):
    with FakeServer(Scenario(step_s=60)) as server:
        boardlift("run", model, "--data", data, "--detach", "--server", server.address)
        refused = boardlift("jobs", "rm", "job-1", "--server", server.address)
    assert refused.code == 2 and "JOB_NOT_ENDED" in refused.err


def test_report_pull_and_push(boardlift, job, model, tmp_path):
    ended = boardlift("report", job, "--html", tmp_path / "r.html", "--junit", tmp_path / "j.xml")
    assert ended.out.startswith("PASS") and (tmp_path / "r.html").read_bytes().startswith(b"<!doctype")
    assert boardlift("report", job, "--json").json["job"] == job
    pulled = boardlift("pull", job, tmp_path / "all")
    assert len(pulled.out.splitlines()) == 5 and (tmp_path / "all" / "int8.bin").exists()
    assert len(boardlift("pull", job, tmp_path / "one", "--only", "int8.bin", "--json").json) == 1
    assert boardlift("pull", job, tmp_path, "--only", "none").code == 2
    pushed = boardlift("push", model)
    digest = pushed.out.split()[0]
    assert boardlift("push", model, "--json").json[0]["sha256"] == digest
    assert boardlift("pull", digest, tmp_path / "by-digest").code == 0
    assert (tmp_path / "by-digest" / digest).read_bytes() == model.read_bytes()


def test_transform(boardlift, model, data, tmp_path):
    ended = boardlift("transform", model, "-o", tmp_path / "t.onnx", "--data", data, "--outputs", "actions")
    assert ended.code == 0 and (tmp_path / "t.onnx").read_bytes() == model.read_bytes()
    assert "obs    float32 [?, 225]  obs_4d       float32 [1, 1, 1, 225]  reshape" in ended.out
    assert "actions  256      max_abs               7e-07  simulated  ≤ 5e-05" in ended.out
    plain = boardlift("transform", model, "--json").json
    assert plain["passes"] == [{"id": "cut-outputs", "nodes_before": 10, "nodes_after": 7}]
    assert "cut-outputs" in boardlift("transform", "--list-passes").out
    assert boardlift("transform", "--list-passes", "--json").json["passes"][0]["exactness"] == "bit-exact"
    assert boardlift("transform").code == 2
    explained = boardlift("transform", model, "--explain", "-o", tmp_path / "none.onnx")
    assert explained.code == 0 and "cut-outputs  bit-exact  made up" in explained.out
    assert "assumed: dimension N of obs taken as 1" in explained.out and not (tmp_path / "none.onnx").exists()
    assert boardlift("transform", model, "--explain", "--json").json["passes"][0]["id"] == "cut-outputs"
    refused = boardlift("transform", model, "--explain", "--outputs", "nothing")
    assert refused.code == 2 and "OUTPUT_NOT_FOUND" in refused.out + refused.err
    assert boardlift("transform", model, "--freeze", "sr=16000").code == 0
    assert "FREEZE_INVALID" in boardlift("transform", model, "--freeze", "sr").err
    assert "FREEZE_INVALID" in boardlift("check", model, "--freeze", "sr=").err


def test_check(boardlift, model):
    ended = boardlift("check", model)
    assert ended.code == 0 and ended.out.splitlines()[1] == "1 nodes on the BPU in 1 subgraph(s), 1 on the CPU"
    assert "Elu_1" in ended.out and "Gemm_0" not in ended.out and "Gemm_0" in boardlift("check", model, "--all").out
    assert boardlift("check", model, "--json").json["check"]["cpu_nodes"] == 1


@pytest.mark.parametrize(("stage", "code"), [("transform", 2), ("check", 1)])
def test_check_says_who_refused(boardlift, monkeypatch, model, stage, code):
    with FakeServer(Scenario(stages={stage: StageScript(failure_code="NO_GOOD")})) as server:
        monkeypatch.setenv("BOARDLIFT_TRANSFORM", server.address)
        monkeypatch.setenv("BOARDLIFT_COMPILER", server.address)
        ended = boardlift("check", model)
        assert ended.code == code and "error NO_GOOD" in ended.err
        assert boardlift("check", model, "--json").json["failure"]["code"] == "NO_GOOD"


def test_lint(boardlift, model, data, tmp_path):
    good = boardlift("lint", data, "--model", model)
    assert good.code == 0 and "split: 64 to calibrate, 256 held out" in good.out and good.out.endswith("Usable.\n")
    samples = np.zeros((10, 3), np.float32)
    samples[0], samples[4, 1] = 1e6, np.nan
    np.savez(tmp_path / "bad.npz", obs=samples, flat=np.zeros((10, 1)))
    bad = boardlift("lint", tmp_path / "bad.npz", "--json")
    assert bad.code == 2 and not bad.json["ok"]
    codes = {finding["code"] for finding in bad.json["findings"]}
    assert codes == {
        "DATASET_FEW_SAMPLES",
        "DATASET_NOT_FINITE",
        "DATASET_INPUT_CONSTANT",
        "DATASET_DUPLICATES",
        "DATASET_NO_PROVENANCE",
    }
    assert "Not usable." in boardlift("lint", tmp_path / "bad.npz").out


def test_lint_says_once_what_it_and_the_server_both_find(boardlift, model, tmp_path):
    np.savez(tmp_path / "one.npz", obs=np.ones((1, 3), np.float32))
    found = boardlift("lint", tmp_path / "one.npz", "--model", model).out
    assert found.count("DATASET_FEW_SAMPLES") == 1 and "Made up" in found and "DATASET_NO_PROVENANCE" in found
    assert "There is one sample." in boardlift("lint", tmp_path / "one.npz").out


def test_compare(boardlift, job, model, data):
    boardlift("run", model, "--data", data)
    ended = boardlift("compare", "job-1", "job-2")
    assert "int8     estimated_latency_us  123.4 us simulated  123.4 us simulated  x 1" in ended.out
    rows = boardlift("compare", "job-1", "job-2", "--json").json["figures"]
    assert {row["ratio"] for row in rows} == {1.0} and len(rows) == 8
    assert "NOT THE SAME" not in ended.out


def test_compare_says_loudly_that_models_or_datasets_differ(boardlift, job, model, data):
    other = data.with_name("other.npz")
    write_dataset(Dataset({"obs": np.ones((40, 3), np.float32)}, {"split": {"calibration": 30, "heldout": 10}}), other)
    boardlift("run", model, "--data", other)
    ended = boardlift("compare", "job-1", "job-2")
    assert "NOT THE SAME DATASET: A dataset " in ended.out and "NOT THE SAME MODEL" not in ended.out
    assert [row[0] for row in boardlift("compare", "job-1", "job-2", "--json").json["differences"]] == ["dataset"]


def judged(gates, figures):
    found = {figure.name: figure for figure in figures}
    results = [GateResult(Gate(metric, 0.0), "pass", found.get(metric), "", "actions") for metric in gates]
    verdict = Verdict("pass", (), "int8", (VariantVerdict("int8", "pass", tuple(results), tuple(figures), ()),), ())
    return JobInfo("j", "succeeded", verdict=verdict)


def test_compare_lists_a_figure_once_whichever_job_has_a_gate_on_it():
    a = [Figure("cosine", 0.9), Figure("max_abs", 0.1)]
    b = [Figure("cosine", 0.8), Figure("max_abs", 0.2)]
    both = compare_jobs(judged(["cosine"], a), judged(["cosine"], b))
    assert [(key[1:], x.value, y.value) for key, x, y in both] == [
        (("cosine", "actions"), 0.9, 0.8),
        (("max_abs", ""), 0.1, 0.2),
    ]
    for left, right in (([], ["cosine"]), (["cosine"], []), (["cosine"], ["max_abs"])):
        rows = compare_jobs(judged(left, a), judged(right, b))
        assert sorted((key[1], x.value, y.value) for key, x, y in rows) == [("cosine", 0.9, 0.8), ("max_abs", 0.1, 0.2)]


def test_doctor_names_a_clock_that_goes_wrong(boardlift, server):
    server.server.clock_ahead_s = 60.0
    server.boards.boards[0].last_seen_time.FromNanoseconds(int((time.time() - 100) * 1e9))
    checks = {check["name"]: check for check in boardlift("doctor", "--json").json}
    assert checks["orchestrator / clock"]["detail"].startswith("60 s ahead of this machine's")
    assert checks["board fake-x5 / clock"]["detail"].startswith("at least 145 s behind")
    server.server.clock_ahead_s = 0.0
    server.boards.boards[0].last_seen_time.FromNanoseconds(int((time.time() + 30) * 1e9))
    checks = {check["name"]: check for check in boardlift("doctor", "--json").json}
    assert "orchestrator / clock" not in checks
    assert "ahead of" in checks["board fake-x5 / clock"]["detail"]


def test_jobs_are_listed_in_one_call_and_removed(boardlift, job, server):
    before = server.calls
    rows = boardlift("jobs", "ls", "--json").json
    assert [row["id"] for row in rows] == ["job-1"] and rows[0]["model_name"]
    after = server.calls
    assert after["ListJobs"] == before.get("ListJobs", 0) + 1 and after.get("GetJob") == before.get("GetJob")
    assert "job-1 removed" in boardlift("jobs", "rm", "job-1").out
    gone = boardlift("jobs", "rm", "job-1")
    assert gone.code == 2 and "JOB_NOT_FOUND" in gone.err
    assert boardlift("jobs", "ls", "--json").json == []


def test_artifacts_shows_what_the_stores_hold_and_the_sweep_freed(boardlift):
    ended = boardlift("artifacts")
    assert "orchestrator  3        12.35 MB  none" in ended.out and "2.00 kB in 2 objects" in ended.out
    assert boardlift("artifacts", "--json").json["compiler"]["size_bytes"] == 12_345_678


def test_a_bare_command_prints_its_help_and_no_error(boardlift):
    ended = boardlift()
    assert ended.code == 2 and ended.err.startswith("Usage: boardlift") and "error USAGE" not in ended.err


def test_doctor(boardlift):
    ended = boardlift("doctor")
    assert ended.code == 0 and "board fake-x5" in ended.out and "simulated, rdk-x5, free" in ended.out
    assert {check["state"] for check in boardlift("doctor", "--json").json} == {"ok"}


def test_a_server_that_is_down_is_named_with_what_to_do(boardlift, model, data):
    down = ("--server", "127.0.0.1:1")
    checks = {check["name"]: check for check in boardlift("doctor", "--json", *down).json}
    assert checks["orchestrator"]["state"] == "missing" and "BOARDLIFT_SERVER" in checks["orchestrator"]["remedy"]
    assert checks["transform"]["state"] == "ok"
    absent = boardlift("run", model, "--data", data.with_name("absent.npz"), *down)
    assert absent.code == 2 and "error FILE_UNREADABLE" in absent.err and "boardlift dataset" in absent.err


def test_a_call_to_a_server_that_is_down_says_what_to_do(boardlift, monkeypatch, model):
    monkeypatch.setenv("BOARDLIFT_TRANSFORM", "127.0.0.1:1")
    ended = boardlift("transform", model, "--json")
    assert ended.code == 3 and ended.json["error"]["code"] == "UNAVAILABLE"
    assert "`make up`" in ended.json["error"]["remedy"] and "BOARDLIFT_TRANSFORM" in ended.json["error"]["remedy"]


def test_an_outage_is_told_once_while_calls_are_repeated(boardlift, server):
    server.fail("ListJobs", times=5)
    ended = boardlift("jobs")
    assert ended.code == 0 and ended.err.count(f"{server.address} does not answer; trying for up to 20 s") == 1
    server.fail("ListJobs", times=5)
    assert boardlift("jobs", "--json").err == ""


def test_dataset_from_many_files_counts_those_it_does_not_name(boardlift, tmp_path):
    (tmp_path / "raw").mkdir()
    for number in range(23):
        np.full(4, number, np.float32).tofile(tmp_path / "raw" / f"{number:02}.bin")
    source, shape = f"obs={tmp_path / 'raw'}", ("--shape", "obs=4")
    ended = boardlift("dataset", "arrays", source, "-o", tmp_path / "d.npz", "--no-split", *shape)
    assert ended.code == 0 and "  19.bin" in ended.out and "20.bin" not in ended.out and "and 3 more files" in ended.out


def test_dataset_from_logs(boardlift, tmp_path):
    lines = [json.dumps({"t": i * 0.02, "state": "RL", "obs_single": [float(i), 1.0]}) for i in range(400)]
    (tmp_path / "a.jsonl").write_text("\n".join(["{broken", *lines]))
    command = ["dataset", "steps", tmp_path / "a.jsonl", "-o", tmp_path / "d.npz", "--calibration", 20, "--heldout", 30]
    ended = boardlift(*command, "--frames", 3, "--synthetic", "--terms", "1,1")
    assert ended.code == 0 and "20 to calibrate, 30 held out, SYNTHETIC" in ended.out and "1 BROKEN_LINE" in ended.out
    shown = boardlift("dataset", "show", tmp_path / "d.npz", "--json").json
    assert shown["document"]["split"] == {"calibration": 20, "heldout": 30} and shown["arrays"][0]["shape"] == "6"
    assert boardlift(*command, "--terms", "a").code == 2
    unused = boardlift(*command, "--state", "WALK")
    assert unused.code == 2 and "No step is usable: 400 NOT_IN_STATE, 1 BROKEN_LINE." in unused.err.replace(
        "1 BROKEN_LINE, 400 NOT_IN_STATE", "400 NOT_IN_STATE, 1 BROKEN_LINE"
    )


def test_dataset_from_arrays_and_images(boardlift, tmp_path):
    from PIL import Image

    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((50, 2, 3)))
    ended = boardlift("dataset", "arrays", f"x={tmp_path / 'a.npy'}", "-o", tmp_path / "a.npz", "--no-split", "--json")
    assert ended.json["arrays"][0]["samples"] == 50 and "split" not in ended.json["document"]
    assert boardlift("dataset", "arrays", "nothing", "-o", tmp_path / "a.npz").code == 2
    (tmp_path / "p").mkdir()
    for index in range(3):
        Image.new("RGB", (4, 2), (index, 0, 0)).save(tmp_path / "p" / f"{index}.png")
    command = ["dataset", "images", tmp_path / "p", "--input", "x", "-o", tmp_path / "i.npz", "--calibration", 1]
    ended = boardlift(*command, "--heldout", 2, "--size", "2x4", "--mean", "1,1,1", "--json")
    assert ended.json["arrays"][0]["shape"] == "3x2x4"
    assert boardlift(*command, "--size", "big").code == 2


def test_usage_errors_and_faults_of_ours(boardlift, monkeypatch):
    assert boardlift("nonsense").code == 2 and boardlift("--version").code == 0
    assert "Exit codes" in boardlift("--help").out
    monkeypatch.setattr("boardlift.client.Client.boards", lambda *_: 1 / 0)
    broken = boardlift("boards")
    assert broken.code == 3 and "error BUG: ZeroDivisionError" in broken.err and "Traceback" not in broken.err
    assert "Traceback" in boardlift("boards", "--debug").err


def test_every_command_takes_json_and_says_what_it_does():
    def walk(command, path):
        assert command.help, path
        assert any(option.name == "json" for option in command.params), path
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {name}")

    walk(app, "boardlift")


def test_the_token_is_not_stored_with_the_job():
    from boardlift.cli.parse import clean_command

    arguments = ["run", "m.onnx", "--token", "secret", "--token=secret", "--data", "d.npz"]
    assert clean_command(arguments) == ("boardlift", "run", "m.onnx", "--data", "d.npz")


@pytest.mark.parametrize("group", ["jobs", "boards", "dataset"])
def test_an_id_in_place_of_a_command_is_answered_with_the_command_that_shows_it(boardlift, group):
    ended = boardlift(group, "j-57c0ec88f73a0d4a")
    assert ended.code == 2 and f"boardlift {group} show j-57c0ec88f73a0d4a" in ended.err
