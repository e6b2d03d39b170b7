"""The orchestrator over its real interfaces: real nats-server, real processes, quick stand-ins for the stages."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from boardlift.errors import AlreadyExistsError, InvalidInputError, NotFoundError, from_rpc_error
from boardlift.v1 import artifact_pb2, job_pb2, job_pb2_grpc
from boardlift_servicekit import channels
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from support import jobs
from support.stack import Stack, running

PASS = job_pb2.Verdict.OUTCOME_PASS


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(Stack(tmp_path_factory.mktemp("stack"))) as started:
        yield started


@pytest.fixture
async def channel(stack: Stack) -> AsyncIterator[Any]:
    opened = channels.connect(stack.address)
    yield opened
    await opened.close()


@pytest.fixture
async def dataset(channel: Any, tmp_path: Path) -> artifact_pb2.ArtifactRef:
    return await jobs.upload(channel, tmp_path, b"samples")


async def test_a_job_runs_through_all_stages_to_a_verdict_and_a_report(
    channel: Any, dataset: Any, tmp_path: Path
) -> None:
    created = await jobs.create(channel, jobs.spec(dataset, "through"))
    job = await jobs.wait_ended(channel, created.id)
    assert job.state == job_pb2.Job.STATE_SUCCEEDED, job
    assert job.verdict.outcome == PASS
    assert job.verdict.best_variant == "int8"
    assert {stage.state for stage in job.stages} == {job_pb2.StageRecord.STATE_SUCCEEDED}
    store = RemoteStore(channel, LocalStore(tmp_path / "pulled"))
    files = {item.name: (await store.fetch(item.artifact)).read_bytes() for item in job.artifacts}
    assert set(files) == {"report.json", "report.html", "junit.xml", "through_int8.bin", "through_int16.bin"}
    report = json.loads(files["report.json"])
    assert report["verdict"]["outcome"] == "pass"
    assert report["reproduce"] == "boardlift run through.onnx"
    assert b"http" not in files["report.html"].replace(b"http-equiv", b"")


async def test_watching_gives_a_snapshot_events_and_the_end_and_resumes_by_sequence(channel: Any, dataset: Any) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    created = await jobs.create(channel, jobs.spec(dataset, "watched"))
    events = [e async for e in stub.WatchJob(job_pb2.WatchJobRequest(job_id=created.id), timeout=40)]
    assert events[0].HasField("job")
    assert events[-1].job.state == job_pb2.Job.STATE_SUCCEEDED
    assert events[-1].job.verdict.outcome == PASS
    assert any(e.HasField("progress") for e in events) and any(e.HasField("log") for e in events)
    sequences = [e.sequence for e in events[1:]]
    assert sequences == sorted(set(sequences))
    middle = sequences[len(sequences) // 2]
    request = job_pb2.WatchJobRequest(job_id=created.id, after_sequence=middle)
    again = [e async for e in stub.WatchJob(request, timeout=10)]
    assert {s for s in sequences if s > middle} <= {e.sequence for e in again[1:]}
    assert min(e.sequence for e in again[1:]) > middle
    request.after_sequence = sequences[-1]
    last = [e async for e in stub.WatchJob(request, timeout=10)]
    assert last[-1].job.state == job_pb2.Job.STATE_SUCCEEDED


async def test_the_same_request_id_gives_the_same_job(channel: Any, dataset: Any) -> None:
    name = str(uuid.uuid4())
    made = await asyncio.gather(*(jobs.create(channel, jobs.spec(dataset, "same"), name) for _ in range(5)))
    assert len({job.id for job in made}) == 1
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await jobs.create(channel, jobs.spec(dataset, "other"), name)
    assert isinstance(from_rpc_error(caught.value), AlreadyExistsError)


async def test_a_refused_variant_fails_alone(channel: Any, dataset: Any) -> None:
    created = await jobs.create(channel, jobs.spec(dataset, "refusal", ("int8", "refused")))
    job = await jobs.wait_ended(channel, created.id)
    assert job.state == job_pb2.Job.STATE_SUCCEEDED
    assert job.verdict.outcome == PASS and job.verdict.best_variant == "int8"
    refused = next(item for item in job.verdict.variants if item.variant == "refused")
    assert refused.outcome == job_pb2.Verdict.OUTCOME_FAIL
    assert "OPSET_TOO_HIGH" in refused.reasons[0]


async def test_a_refused_dataset_still_ends_in_a_verdict_with_a_report(channel: Any, dataset: Any) -> None:
    wanted = jobs.spec(dataset, "bad data")
    wanted.split.seed = 666
    job = await jobs.wait_ended(channel, (await jobs.create(channel, wanted)).id)
    assert job.state == job_pb2.Job.STATE_SUCCEEDED
    assert job.verdict.outcome == job_pb2.Verdict.OUTCOME_FAIL
    assert {item.name for item in job.artifacts} == {"report.json", "report.html", "junit.xml"}


async def test_lists_are_paged_newest_first(channel: Any, dataset: Any) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    made = [(await jobs.create(channel, jobs.spec(dataset, f"page{i}"))).id for i in range(3)]
    token, seen = "", []
    for _ in range(50):
        answer = await stub.ListJobs(job_pb2.ListJobsRequest(page_size=2, page_token=token), timeout=10)
        seen += [job.id for job in answer.jobs]
        token = answer.next_page_token
        if not token:
            break
    assert seen[:3] == made[::-1]
    assert len(seen) == len(set(seen))
    for name in made:
        await jobs.wait_ended(channel, name)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda spec: spec.ClearField("variants"), "spec.variants"),
        (lambda spec: setattr(spec, "target", "rdk-x9"), "spec.target"),
        (lambda spec: setattr(spec.variants[0], "name", "../x"), "spec.variants[0].name"),
        (lambda spec: setattr(spec.variants[1], "name", "int8"), "spec.variants[1].name"),
        (lambda spec: spec.gates.add(metric="beauty", minimum=1), "spec.gates[2].metric"),
        (lambda spec: spec.gates.add(metric="cosine"), "spec.gates[2]"),
        (lambda spec: spec.ClearField("dataset"), "spec.dataset"),
        (lambda spec: setattr(spec, "goal", "beauty"), "spec.goal"),
    ],
)
async def test_a_wrong_spec_is_refused_with_its_field(channel: Any, dataset: Any, change: Any, field: str) -> None:
    wanted = jobs.spec(dataset, "wrong")
    change(wanted)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await jobs.create(channel, wanted)
    error = from_rpc_error(caught.value)
    assert isinstance(error, InvalidInputError)
    assert error.metadata["field"] == field


async def test_unknown_jobs_are_not_found(channel: Any) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    for call in (
        stub.GetJob(job_pb2.GetJobRequest(job_id="j-none"), timeout=5),
        stub.CancelJob(job_pb2.CancelJobRequest(job_id="j-none"), timeout=5),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert isinstance(from_rpc_error(caught.value), NotFoundError)


async def test_validate_only_creates_nothing(channel: Any, dataset: Any) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    request = job_pb2.CreateJobRequest(spec=jobs.spec(dataset, "dry"), job_id="dry-run", validate_only=True)
    answer = await stub.CreateJob(request, timeout=10)
    assert [stage.stage for stage in answer.job.stages][:2] == ["ingest", "transform"]
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.GetJob(job_pb2.GetJobRequest(job_id="dry-run"), timeout=5)


async def test_boards_register_themselves_and_are_leased(channel: Any) -> None:
    stub, end = job_pb2_grpc.BoardServiceStub(channel), time.monotonic() + 60
    found: list[Any] = []
    while not found and time.monotonic() < end:  # the stack is up when the orchestrator is
        boards = (await stub.ListBoards(job_pb2.ListBoardsRequest(), timeout=5)).boards
        found = [item for item in boards if item.info.id == "fake-0" and item.online]
    (board,) = found
    assert board.online and board.info.simulated and board.state.in_rotation
    request = job_pb2.GrantBoardLeaseRequest(board_id="fake-0", holder="ann")
    granted = await stub.GrantBoardLease(request, timeout=5)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GrantBoardLease(job_pb2.GrantBoardLeaseRequest(board_id="fake-0", holder="bob"), timeout=5)
    assert from_rpc_error(caught.value).reason == "BOARD_LEASED"
    boards = (await stub.ListBoards(job_pb2.ListBoardsRequest(), timeout=5)).boards
    assert [item.state.lease_holder for item in boards if item.info.id == "fake-0"] == ["ann"]
    release = job_pb2.ReleaseBoardLeaseRequest(board_id="fake-0", lease_id=granted.lease_id)
    await stub.ReleaseBoardLease(release, timeout=5)
    again = await stub.GrantBoardLease(job_pb2.GrantBoardLeaseRequest(board_id="fake-0", holder="bob"), timeout=5)
    release.lease_id = again.lease_id
    await stub.ReleaseBoardLease(release, timeout=5)


async def test_a_governor_that_no_board_permits_is_refused_before_anything_runs(channel: Any, dataset: Any) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    spec = jobs.spec(dataset, "governed")
    spec.perf.governor = "performance"
    for call in (
        stub.CreateJob(job_pb2.CreateJobRequest(spec=spec), timeout=5),
        stub.PlanJob(job_pb2.PlanJobRequest(spec=spec), timeout=5),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert from_rpc_error(caught.value).reason == "GOVERNOR_NOT_PERMITTED"


async def test_a_board_chosen_by_label_runs_the_job(channel: Any, dataset: Any, stack: Stack) -> None:
    wanted = jobs.spec(dataset, "labelled", ("int8",))
    wanted.board.id = "fake-0"
    job = await jobs.wait_ended(channel, (await jobs.create(channel, wanted)).id)
    board = next(stage for stage in job.stages if stage.stage == "board")
    assert board.worker == "fake-0"


async def test_cancel_ends_a_waiting_job_within_seconds(channel: Any, dataset: Any) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    wanted = jobs.spec(dataset, "waits", ("int8",))
    wanted.board.labels["colour"] = "none-has-it"
    created = await jobs.create(channel, wanted)
    while True:
        job = (await stub.GetJob(job_pb2.GetJobRequest(job_id=created.id), timeout=5)).job
        running = [s for s in job.stages if s.stage == "board" and s.state == job_pb2.StageRecord.STATE_RUNNING]
        if running:
            break
        await asyncio.sleep(0.1)
    assert running[0].note.startswith("waiting for a board with the labels colour=none-has-it")
    start = time.monotonic()
    await stub.CancelJob(job_pb2.CancelJobRequest(job_id=created.id), timeout=5)
    job = await jobs.wait_ended(channel, created.id)
    assert job.state == job_pb2.Job.STATE_CANCELLED
    assert time.monotonic() - start < 7.5  # at 8 s it ends even without an answer


@pytest.mark.slow
@pytest.mark.timeout(280)
async def test_a_dead_board_s_task_goes_to_another_board_with_the_labels(tmp_path: Path) -> None:
    fakes = {"FAKE_LABELS": "lab=a", "FAKE_SECONDS": "1.5"}
    with running(Stack(tmp_path, workers=2, fakes=fakes)) as stack:
        channel = channels.connect(stack.address)
        boards = job_pb2_grpc.BoardServiceStub(channel)
        while len((await boards.ListBoards(job_pb2.ListBoardsRequest(labels={"lab": "a"}), timeout=5)).boards) < 2:
            await asyncio.sleep(0.2)
        wanted = jobs.spec(await jobs.upload(channel, tmp_path / "c", b"x"), "moves", ("int8",))
        wanted.board.labels["lab"] = "a"
        created = await jobs.create(channel, wanted)
        stub = job_pb2_grpc.JobServiceStub(channel)
        worker = ""
        while not worker:
            job = (await stub.GetJob(job_pb2.GetJobRequest(job_id=created.id), timeout=5)).job
            worker = next(stage.worker for stage in job.stages if stage.stage == "board")
            await asyncio.sleep(0.1)
        # The first worker also serves the other stages: only the board's queue of the second one may die.
        victim = int(worker[-1])
        stack.services[victim].kill()
        ended = await jobs.wait_ended(channel, created.id, timeout_s=60)
        await channel.close()
    board = next(stage for stage in ended.stages if stage.stage == "board")
    assert ended.state == job_pb2.Job.STATE_SUCCEEDED
    assert board.worker == f"fake-{1 - victim}"
    assert board.attempt == 2


async def test_many_watchers_of_one_job_all_see_all_of_it(channel: Any, dataset: Any) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    created = await jobs.create(channel, jobs.spec(dataset, "crowd"))

    async def watch() -> list[int]:
        request = job_pb2.WatchJobRequest(job_id=created.id)
        events = [e async for e in stub.WatchJob(request, timeout=60)]
        assert events[-1].job.state == job_pb2.Job.STATE_SUCCEEDED
        return [e.sequence for e in events[1:]]

    first = [asyncio.create_task(watch()) for _ in range(60)]
    await asyncio.sleep(0.5)
    late = [asyncio.create_task(watch()) for _ in range(20)]
    seen = await asyncio.gather(*first, *late)
    longest = max(seen, key=len)
    assert all(set(item) <= set(longest) and item[-1] == longest[-1] for item in seen)
    assert min(len(item) for item in seen) >= len(longest) - 10  # states that came late are left out
