"""Old jobs and unused artifacts go; whatever a job names, or somebody uses, stays: also under load and under kills."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from boardlift.errors import BoardliftError, from_rpc_error
from boardlift.v1 import artifact_pb2, job_pb2, job_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc
from boardlift_servicekit import channels
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from boardlift_servicekit.buckets import Bucket
from boardlift_servicekit.messaging import connect
from boardlift_servicekit.sweep_store import list_objects
from support import jobs
from support.persist import persist, submit, wait_for_end
from support.stack import Stack, running

SUCCEEDED = job_pb2.Job.STATE_SUCCEEDED
WEEKS_S = 21 * 86400.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings = {"BOARDLIFT_TIDY_EVERY": "0.3", "BOARDLIFT_ACTIVE_JOBS": "1"}
    with running(Stack(tmp_path_factory.mktemp("retention"), settings=settings)) as started:
        yield started


@pytest.fixture
async def channel(stack: Stack) -> AsyncIterator[Any]:
    opened = channels.connect(stack.address)
    yield opened
    await opened.close()


def store_of(stack: Stack) -> LocalStore:
    return LocalStore(stack.folder / "data" / "artifacts")


def let_weeks_go_by(store: LocalStore) -> None:
    for item in list_objects(store):
        when = item.used - WEEKS_S
        os.utime(store.path(item.sha256), (when, when))


async def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.1)


async def reason_of(call: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = from_rpc_error(caught.value)
    assert isinstance(error, BoardliftError)
    return error.reason


async def patiently(make: Any) -> Any:
    """Repeat a transfer while its server is away."""
    end = time.monotonic() + 90
    while True:
        try:
            return await make()
        except BoardliftError as error:
            if not error.retryable or time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)


async def info_of(channel: Any) -> toolchain_pb2.GetServerInfoResponse:
    stub = toolchain_pb2_grpc.ServerServiceStub(channel)
    found: toolchain_pb2.GetServerInfoResponse = await stub.GetServerInfo(
        toolchain_pb2.GetServerInfoRequest(), timeout=5
    )
    return found


async def next_sweep(channel: Any) -> toolchain_pb2.StoreInfo:
    """Wait for a sweep that begins from now on."""
    begun = time.time_ns()
    while (info := await info_of(channel)).store.sweep_time.ToNanoseconds() < begun + 400_000_000:
        await asyncio.sleep(0.1)
    return info.store


async def test_a_job_s_files_live_as_long_as_the_job_and_no_longer(channel: Any, stack: Stack, tmp_path: Path) -> None:
    stub, store = job_pb2_grpc.JobServiceStub(channel), store_of(stack)
    dataset = await jobs.upload(channel, tmp_path / "c", b"samples")
    stray = await jobs.upload(channel, tmp_path / "c", b"nobody's")
    specs = [jobs.spec(dataset, "twins") for _ in range(2)]
    specs[1].display_name = "the other"
    first, second = [await jobs.wait_ended(channel, (await jobs.create(channel, spec)).id) for spec in specs]
    assert first.state == second.state == SUCCEEDED
    shared = {item.artifact.sha256 for item in first.artifacts} & {item.artifact.sha256 for item in second.artifacts}
    own = {item.artifact.sha256 for item in first.artifacts} - shared
    assert shared and own
    let_weeks_go_by(store)
    await until(lambda: not store.has(stray.sha256))
    assert (await next_sweep(channel)).freed_objects == 0  # both jobs keep all that they name
    assert not await store.missing([*shared, *own])
    let_weeks_go_by(store)
    await stub.DeleteJob(job_pb2.DeleteJobRequest(job_id=first.id), timeout=10)
    assert await reason_of(stub.GetJob(job_pb2.GetJobRequest(job_id=first.id), timeout=5)) == "JOB_NOT_FOUND"
    assert await reason_of(stub.DeleteJob(job_pb2.DeleteJobRequest(job_id=first.id), timeout=5)) == "JOB_NOT_FOUND"
    listed = (await stub.ListJobs(job_pb2.ListJobsRequest(), timeout=5)).jobs
    assert [job.id for job in listed if job.id in (first.id, second.id)] == [second.id]
    await until(lambda: not any(store.has(digest) for digest in own))
    await next_sweep(channel)
    reader = RemoteStore(channel, LocalStore(tmp_path / "pulled"))
    for item in second.artifacts:
        assert (await reader.fetch(item.artifact)).stat().st_size == item.artifact.size_bytes
    await stub.DeleteJob(job_pb2.DeleteJobRequest(job_id=second.id), timeout=10)
    let_weeks_go_by(store)
    await until(lambda: not list(list_objects(store)))
    # The services still remember results whose artifacts are gone: never an error.
    dataset = await jobs.upload(channel, tmp_path / "c2", b"samples")
    again = await jobs.wait_ended(channel, (await jobs.create(channel, jobs.spec(dataset, "twins"))).id)
    assert again.state == SUCCEEDED


async def test_nothing_is_swept_while_a_job_can_t_be_read(channel: Any, stack: Stack, tmp_path: Path) -> None:
    store, client = store_of(stack), await connect(stack.nats_url, "test")
    records = Bucket(client, client.jetstream(), "JOB")
    await records.put("of-a-newer-release", b'{"state": "unheard of"}')
    try:
        named = await jobs.upload(channel, tmp_path / "c", b"named by the job that nobody here can read")
        let_weeks_go_by(store)
        await until(lambda: "JOBS_UNREADABLE" in stack.servers[0].log.read_text())
        await asyncio.sleep(1.0)  # three sweeps
        assert store.has(named.sha256)
        assert "JOBS_UNREADABLE" in {finding.code for finding in (await info_of(channel)).findings}
        done = await jobs.wait_ended(channel, (await jobs.create(channel, jobs.spec(named, "beside"))).id)
        assert done.state == SUCCEEDED  # and all other jobs go on
    finally:
        await records.remove("of-a-newer-release")
        await client.close()
    await next_sweep(channel)


async def test_a_job_that_has_not_ended_is_not_removed(channel: Any, tmp_path: Path) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    spec = jobs.spec(await jobs.upload(channel, tmp_path, b"samples"), "stays", ("int8",))
    spec.board.labels["colour"] = "none-has-it"
    job = await jobs.create(channel, spec)
    assert await reason_of(stub.DeleteJob(job_pb2.DeleteJobRequest(job_id=job.id), timeout=5)) == "JOB_NOT_ENDED"
    await stub.CancelJob(job_pb2.CancelJobRequest(job_id=job.id), timeout=5)
    await jobs.wait_ended(channel, job.id)
    await stub.DeleteJob(job_pb2.DeleteJobRequest(job_id=job.id), timeout=5)


async def test_jobs_removed_as_soon_as_they_are_made_keep_nobody_s_turn(channel: Any, tmp_path: Path) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    dataset = await jobs.upload(channel, tmp_path, b"samples")
    for index in range(5):
        job = await jobs.create(channel, jobs.spec(dataset, f"short {index}", ("int8",)))
        await stub.CancelJob(job_pb2.CancelJobRequest(job_id=job.id), timeout=5)
        await jobs.wait_ended(channel, job.id)
        await stub.DeleteJob(job_pb2.DeleteJobRequest(job_id=job.id), timeout=5)
    after = await jobs.wait_ended(channel, (await jobs.create(channel, jobs.spec(dataset, "after"))).id)
    assert after.state == SUCCEEDED


async def test_a_removed_job_s_id_is_not_taken_for_the_next_one(channel: Any, tmp_path: Path) -> None:
    stub = job_pb2_grpc.JobServiceStub(channel)
    dataset = await jobs.upload(channel, tmp_path, b"samples")
    request = job_pb2.CreateJobRequest(spec=jobs.spec(dataset, "first"), job_id="again")
    await stub.CreateJob(request, timeout=10)
    assert (await jobs.wait_ended(channel, "again")).state == SUCCEEDED
    await stub.DeleteJob(job_pb2.DeleteJobRequest(job_id="again"), timeout=5)
    assert await reason_of(stub.CreateJob(request, timeout=10)) == "JOB_REMOVED_LATELY"


async def test_a_store_of_another_queue_is_left_alone(stack: Stack, channel: Any, tmp_path: Path) -> None:
    store, stamp = store_of(stack), stack.folder / "data" / "artifacts" / "queue.txt"
    await until(stamp.exists)
    own = stamp.read_text()
    stray = await jobs.upload(channel, tmp_path / "c", b"of a lost queue")
    try:
        stamp.write_text("KV_JOB 1970-01-01\n")
        let_weeks_go_by(store)
        while "STORE_OF_ANOTHER_QUEUE" not in {finding.code for finding in (await info_of(channel)).findings}:
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)
        assert store.path(stray.sha256).exists()
    finally:
        stamp.write_text("")  # the disk was full in the middle of its first write: no reason to sweep never again
    await until(lambda: not store.path(stray.sha256).exists())
    assert stamp.read_text() == own


@pytest.mark.timeout(200)
async def test_a_full_store_gives_up_the_oldest_ended_jobs_first(tmp_path: Path) -> None:
    settings = {"BOARDLIFT_TIDY_EVERY": "0.3", "BOARDLIFT_MAX_STORE_BYTES": "400000", "BOARDLIFT_KEEP_FRESH": "2"}
    with running(Stack(tmp_path, settings=settings)) as stack:
        channel = channels.connect(stack.address)
        stub = job_pb2_grpc.JobServiceStub(channel)
        made = []
        for index in range(4):
            dataset = await jobs.upload(channel, tmp_path / "c", bytes([index]) * 150_000)
            created = await jobs.create(channel, jobs.spec(dataset, f"large {index}", ("int8",)))
            made.append((await jobs.wait_ended(channel, created.id)).id)
        for _ in range(100):
            left = {job.id for job in (await stub.ListJobs(job_pb2.ListJobsRequest(), timeout=5)).jobs}
            info = (await info_of(channel)).store
            if len(left) < 4 and info.size_bytes <= 400_000:
                break
            await asyncio.sleep(0.1)
        await channel.close()
    assert info.limit_bytes == 400_000 >= info.size_bytes
    assert made[0] not in left and made[3] in left
    assert left == set(made[-len(left) :])


@pytest.mark.timeout(200)
async def test_what_came_since_a_running_stage_began_stays_until_it_ends(tmp_path: Path) -> None:
    settings = {"BOARDLIFT_TIDY_EVERY": "0.3", "BOARDLIFT_KEEP_FRESH": "1", "BOARDLIFT_KEEP_UNUSED": "0"}
    with running(Stack(tmp_path, settings=settings)) as stack:
        channel, store = channels.connect(stack.address), store_of(stack)
        stub = job_pb2_grpc.JobServiceStub(channel)
        spec = jobs.spec(await jobs.upload(channel, tmp_path / "c", b"samples"), "long", ("int8",))
        spec.board.labels["colour"] = "none-has-it"
        job = await jobs.create(channel, spec)
        while not any(stage.stage == "board" and stage.HasField("start_time") for stage in job.stages):
            await asyncio.sleep(0.1)
            job = (await stub.GetJob(job_pb2.GetJobRequest(job_id=job.id), timeout=5)).job
        early = await jobs.upload(channel, tmp_path / "c", b"made early by a stage that runs on")
        await asyncio.sleep(2.5)
        assert store.path(early.sha256).exists()
        await stub.CancelJob(job_pb2.CancelJobRequest(job_id=job.id), timeout=5)
        await until(lambda: not store.path(early.sha256).exists())
        await channel.close()


@pytest.mark.slow
@pytest.mark.timeout(700)
async def test_sweeps_under_load_and_kills_cost_no_job_anything(tmp_path: Path) -> None:
    """Everything unused for 4 s goes, by two orchestrators that are killed in turn, while jobs share artifacts."""
    settings = {
        "BOARDLIFT_TIDY_EVERY": "0.1",
        "BOARDLIFT_KEEP_FRESH": "4",
        "BOARDLIFT_KEEP_UNUSED": "4",
        "BOARDLIFT_KEEP_JOBS": "25",
        "BOARDLIFT_KEEP_PARTIAL": "4",
    }
    rng = random.Random(int(os.environ.get("CHAOS_SEED", "5")))
    with running(Stack(tmp_path, orchestrators=2, workers=2, settings=settings)) as stack:
        opened = [channels.connect(f"127.0.0.1:{port}") for port in stack.orchestrator_ports]
        seen, swept = [], 0

        async def one(index: int) -> None:
            await asyncio.sleep(index * 0.5)
            store, name = RemoteStore(opened[index % 2], LocalStore(tmp_path / "client")), ""
            while not name:
                sent = artifact_pb2.ArtifactRef()
                sent.CopyFrom(await patiently(lambda: store.put_bytes(b"samples %d" % (index % 3), "x")))
                try:  # equal work comes back from the cache
                    name = await persist(lambda sent=sent: submit(opened, sent, index % 7))
                except grpc.aio.AioRpcError as error:  # no orchestrator was there for longer than 4 s
                    assert from_rpc_error(error).reason == "ARTIFACT_MISSING"
            ended = await wait_for_end(opened[index % 2], name)
            seen.append(ended)
            assert ended.state == SUCCEEDED, ended
            for item in ended.artifacts:  # the job stays for 25 s: so do its files
                copy = RemoteStore(opened[index % 2], LocalStore(tmp_path / f"pulled{index}"))
                await patiently(lambda copy=copy, item=item: copy.fetch(item.artifact))  # type: ignore[misc]

        async def kill() -> int:
            for turn in range(12):
                await asyncio.sleep(rng.uniform(0.8, 1.6))
                victim = stack.servers[turn % 2]
                victim.kill()
                await asyncio.sleep(rng.uniform(0.1, 0.3))
                victim.start()
            return 12

        killer = asyncio.create_task(kill())
        await asyncio.gather(*(one(index) for index in range(40)))
        killed = await killer
        store = store_of(stack)
        await until(lambda: not list(list_objects(store)), 90)
        log = "".join((tmp_path / f"orchestrator{i}.log").read_text() for i in range(2))
        swept = log.count('"event": "swept"')
        for channel in opened:
            await channel.close()
    cached = sum(stage.cached for job in seen for stage in job.stages)
    print(f"{len(seen)} jobs, {cached} stages from caches, {swept} sweeps that removed something, {killed} kills")
    assert len(seen) == 40 and cached > 0 and swept > 10
    assert "retention_failed" not in log
