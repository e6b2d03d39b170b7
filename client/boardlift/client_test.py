from __future__ import annotations

import hashlib
import threading

import grpc
import numpy as np
import pytest

from boardlift.client import Client
from boardlift.errors import (
    CancelledError,
    DataLossError,
    DeadlineError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)
from boardlift.models import Variant
from boardlift.testing import FakeServer, Scenario, StageScript


def test_a_job_goes_from_model_to_verdict_and_files(client, model, samples, tmp_path):
    job = client.run(model, samples, ["int16", "int8"], gates=["cosine>=0.99"], outputs=("actions",), name="demo")
    assert job.wait(timeout=10) is job
    assert job.verdict.passed and job.verdict.best_variant == "int16" and job.state == "succeeded"
    assert {figure.kind for variant in job.verdict.variants for figure in variant.figures} == {"simulated"}
    assert job.info.name == "demo" and job.info.model_name == "policy.onnx" and job.info.variants == ("int16", "int8")
    saved = job.artifacts["int8.bin"].save(tmp_path)
    assert saved == tmp_path / "int8.bin" and saved.read_bytes() == b"made up int8"
    assert job.report()["verdict"]["outcome"] == "pass"
    assert "int16" in job._repr_html_() and "succeeded" in repr(job)


def test_a_broken_gate_is_a_verdict_and_not_an_exception(client, model, samples):
    job = client.run(model, samples, ["int8"], gates=["cosine>=0.99999"]).wait()
    assert job.verdict.outcome == "fail" and "breaks" in job.reasons[0]
    undecided = client.run(model, samples, ["int8"], gates=["board_p99_ms<=2"]).wait()
    assert undecided.verdict.outcome == "undecided"


@pytest.mark.parametrize(("user_fault", "expected"), [(True, InvalidInputError), (False, InternalError)])
def test_a_failed_job_raises_by_whose_fault_it_is(model, samples, user_fault, expected):
    script = StageScript(failure_code="NO_GOOD", user_fault=user_fault)
    with FakeServer(Scenario(stages={"transform": script})) as server, Client(server.address) as client:
        with pytest.raises(expected, match="NO_GOOD") as caught:
            client.run(model, samples).wait()
        assert caught.value.remedy and caught.value.metadata["subject"] == "node_1"


def test_cancel_ends_the_job_and_wait_says_so(model, samples):
    with FakeServer(Scenario(step_s=30)) as server, Client(server.address) as client:
        job = client.run(model, samples)
        with pytest.raises(DeadlineError, match=f"{job.id} has not ended.*it goes on.*jobs watch {job.id}"):
            job.wait(timeout=0.2)
        assert job.cancel().state == "cancelling"
        with pytest.raises(CancelledError):
            job.wait(timeout=10)
        assert job.state == "cancelled"


def test_events_come_once_and_in_order_across_broken_lines(model, samples):
    scenario = Scenario(step_s=0.01, stages={"compile/int8": StageScript(lines=("calibrate", "compile"))})
    with FakeServer(scenario) as server, Client(server.address) as client:
        server.fail("WatchJob", times=4, after=5)
        events = list(client.run(model, samples).events())
        assert server.calls["WatchJob"] >= 5
    numbers = [event.sequence for event in events if event.sequence]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [event.log.text for event in events if event.log] == ["calibrate", "compile"]
    assert events[-1].job.state == "succeeded" and any(event.progress for event in events)


def test_events_of_an_ended_job_are_its_whole_history(client, model, samples):
    job = client.run(model, samples).wait()
    again = list(client.job(job.id).events())
    assert again[-1].job.done and sum(1 for event in again if event.progress) == 10


def test_short_calls_survive_a_server_that_is_away_for_a_moment(client, server, model, samples):
    server.fail("CreateJob", times=3)
    server.fail("GetJob", times=2)
    job = client.run(model, samples)
    assert job.refresh().id == job.id and len(list(client.jobs())) == 1


def test_a_job_that_is_removed_by_a_try_whose_answer_is_lost_is_removed(client, server, model, samples):
    job = client.run(model, samples).wait()
    server.fail("DeleteJob", after=1)
    client.delete_job(job.id)
    assert server.calls["DeleteJob"] == 2 and not list(client.jobs())
    with pytest.raises(NotFoundError):
        client.delete_job(job.id)


def test_only_unavailable_is_retried(client, server):
    server.fail("GetJob", code=grpc.StatusCode.INTERNAL)
    with pytest.raises(InternalError):
        client.get_job("x")
    assert server.calls["GetJob"] == 1


def test_patience_ends():
    with Client("127.0.0.1:1", patience_s=0.3) as client, pytest.raises(UnavailableError):
        client.boards()


def test_the_same_request_id_gives_the_same_job(client, model, samples):
    first, second = (client.run(model, samples, request_id="r1") for _ in range(2))
    assert first.id == second.id != client.run(model, samples).id


def test_a_clone_changes_what_is_asked_and_keeps_the_rest(client, server, model, samples, tmp_path):
    first = client.run(model, samples, ["int8"], gates=["cosine>=0.9"], outputs=("actions",), name="a", board="x")
    same = first.clone()
    other = tmp_path / "other.onnx"
    other.write_bytes(model.read_bytes() + b"\x12\x01x")
    changed = client.clone(first.id, model=other, variants=["int16"], gates=["max_abs<=1"], name="b", skip_board=True)
    specs = {job_id: fake.job.spec for job_id, fake in server.jobs.jobs.items()}
    assert same.id != first.id and specs[same.id] == specs[first.id]
    spec = specs[changed.id]
    assert (
        spec.model_name == "other.onnx"
        and spec.model != specs[first.id].model
        and spec.dataset == specs[first.id].dataset
    )
    assert [v.name for v in spec.variants] == ["int16"] and [g.metric for g in spec.gates] == ["max_abs"]
    assert spec.display_name == "b" and spec.skip_board and list(spec.transform.outputs) == ["actions"]
    with pytest.raises(NotFoundError):
        client.clone("none")


def test_known_content_is_not_sent_again(client, server, model):
    assert client.push(model).sha256 == hashlib.sha256(model.read_bytes()).hexdigest()
    client.push(model)
    assert server.artifacts.uploads == 1


def test_an_upload_goes_on_where_it_broke(client, server, tmp_path):
    path = tmp_path / "big.bin"
    path.write_bytes(np.random.default_rng(0).bytes(3_000_000))
    server.fail("UploadArtifact", times=2, after=4)
    artifact = client.push(path)
    assert server.artifacts.stored[artifact.sha256][0] == path.read_bytes()
    assert server.artifacts.uploads == 3


def test_damaged_leftovers_on_the_server_are_sent_anew(client, server, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 1000)
    server.artifacts.partial[hashlib.sha256(path.read_bytes()).hexdigest()] = b"y" * 500
    assert server.artifacts.stored[client.push(path).sha256][0] == path.read_bytes()


def test_a_download_goes_on_where_it_broke_and_leaves_no_litter(client, server, tmp_path):
    data = np.random.default_rng(0).bytes(2_000_000)
    ref = server.artifacts.put(data)
    server.fail("DownloadArtifact", times=2, after=3)
    assert client.fetch(ref.sha256, tmp_path / "out" / "x.bin").read_bytes() == data
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x.bin"]


def test_wrong_bytes_never_appear_under_the_name(client, server, tmp_path):
    server.artifacts.stored["0" * 64] = (b"something else", "")
    with pytest.raises(DataLossError, match="DIGEST_MISMATCH"):
        client.fetch("0" * 64, tmp_path / "x")
    with pytest.raises(NotFoundError):
        client.fetch("1" * 64, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_jobs_are_listed_in_pages_newest_first(client, model, samples):
    pushed, data = client.push_model(model), client.push_data(samples)
    made = [client.run(pushed, data, ["int8"]).id for _ in range(5)]
    assert [job.id for job in client.jobs()] == made[::-1]
    assert len(list(client.jobs(limit=3))) == 3
    with pytest.raises(InvalidInputError, match="STATE_UNKNOWN"):
        list(client.jobs(state="lost"))


def test_boards_and_server_say_what_is_simulated(client):
    (board,) = client.boards()
    assert board.id == "fake-x5" and board.simulated and board.online and board.labels == {"lab": "test"}
    assert client.devices({"lab": "other"}) == []
    assert client.server_info().tools[0].simulated


@pytest.mark.parametrize("variants", [[], ["int8", "int8"], ["Int8"], ["mine"], ["a=int8,colour=red"], [Variant("x")]])
def test_unusable_variants_are_refused_before_anything_is_sent(client, server, model, samples, variants):
    with pytest.raises(InvalidInputError) as caught:
        client.run(model, samples, variants)
    assert caught.value.remedy and "CreateJob" not in server.calls


def test_data_of_an_unusable_kind_is_refused(client):
    with pytest.raises(InvalidInputError, match="DATASET_INVALID"):
        client.push_data(42)


def test_one_client_serves_many_threads(client, model, samples):
    states = []
    pushed, data = client.push_model(model), client.push_data(samples)

    def work():
        states.append(client.run(pushed, data, ["int8"]).wait().verdict.outcome)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert states == ["pass"] * 6
