import asyncio
import os
import time

import pytest
from boardlift.errors import CancelledError, NotFoundError, UnavailableError
from boardlift.v1 import toolchain_pb2, transform_pb2

from boardlift_servicekit import interceptors, reader, stored_results
from boardlift_servicekit.access import Principal
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.executions import Executions, code_version, request_key
from boardlift_servicekit.stored_results import artifacts_in, sweep_results

ANN, EVE = Principal("ann", frozenset({"write"})), Principal("eve", frozenset({"write"}))


def as_caller(principal):
    interceptors._CALLER.set(principal)


class Counter:
    def __init__(self, seconds=0.0, failure=None):
        self.started = self.cancelled = 0
        self.seconds, self.failure = seconds, failure

    async def __call__(self, emitter):
        self.started += 1
        emitter.progress("half", 0.5)
        emitter.log("a line")
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        result = transform_pb2.TransformResult(io_snippet="done")
        if self.failure is not None:
            result.failure.CopyFrom(self.failure)
        return result


async def collect(executions, key, work, name=""):
    return [event async for event in executions.run(key, name, transform_pb2.TransformResult, work)]


@pytest.fixture
def make(tmp_path):
    store = LocalStore(tmp_path / "store")
    return lambda **more: Executions(tmp_path / "results", store, slots=more.pop("slots", 2), **more)


async def test_equal_requests_share_one_run_and_see_its_events(make):
    executions, work = make(), Counter(0.2)
    first, second = await asyncio.gather(collect(executions, "k", work), collect(executions, "k", work))
    assert work.started == 1
    assert [type(e).__name__ for e in first] == ["Progress", "LogLine", "TransformResult"]
    assert first[-1] == second[-1]


async def test_a_finished_run_survives_a_restart_and_says_cached(make):
    work = Counter()
    await collect(make(), "k", work)
    (event,) = await collect(make(), "k", work)
    assert work.started == 1
    assert event.execution.cached
    assert event.execution.digest == "k"


@pytest.mark.parametrize("damage", [b"", b"\xff\xff"])
async def test_a_stored_result_that_lost_its_bytes_is_made_again(make, tmp_path, damage):
    work = Counter()
    await collect(make(), "k", work)
    (tmp_path / "results/k.pb").write_bytes(damage)
    *_, result = await collect(make(), "k", work)
    assert work.started == 2
    assert result.io_snippet == "done" and not result.execution.cached


async def test_a_stored_result_whose_artifact_is_gone_is_made_again(make, tmp_path):
    store = LocalStore(tmp_path / "store")
    ref = await store.put_bytes(b"model", "application/onnx")

    async def work(emitter):
        return transform_pb2.TransformResult(model=ref)

    await collect(make(), "k", work)
    store.path(ref.sha256).unlink()
    (event,) = await collect(make(), "k", work)
    assert not event.execution.cached


@pytest.mark.parametrize(("user_fault", "runs"), [(True, 1), (False, 2)])
async def test_only_a_no_that_the_input_causes_is_stored(make, user_fault, runs):
    work = Counter(failure=toolchain_pb2.StageFailure(code="X", user_fault=user_fault))
    for _ in range(2):
        await collect(make(), "k", work)
    assert work.started == runs


async def test_cancel_stops_at_once_when_nobody_else_waits(make):
    executions, work = make(), Counter(60)
    task = asyncio.create_task(collect(executions, "k", work, "mine"))
    await asyncio.sleep(0.05)
    assert await executions.cancel("mine")
    assert work.cancelled == 1
    with pytest.raises(CancelledError):
        await task


async def test_cancel_leaves_the_run_to_the_others(make):
    executions, work = make(), Counter(0.3)
    mine = asyncio.create_task(collect(executions, "k", work, "mine"))
    other = asyncio.create_task(collect(executions, "k", work, "other"))
    await asyncio.sleep(0.05)
    assert not await executions.cancel("mine")
    with pytest.raises(CancelledError):
        await mine
    assert (await other)[-1].io_snippet == "done"
    assert work.cancelled == 0


async def test_who_comes_while_a_stopped_run_dies_gets_a_run_of_its_own(make):
    executions, runs = make(), []

    async def work(emitter):
        runs.append("begun")
        try:
            await asyncio.sleep(60 if len(runs) == 1 else 0)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)  # as a tool that takes its time to die
            runs.append("gone")
            raise
        return transform_pb2.TransformResult(io_snippet="done")

    first = asyncio.create_task(collect(executions, "k", work, "mine"))
    await asyncio.sleep(0.05)
    stop = asyncio.create_task(executions.cancel("mine"))
    await asyncio.sleep(0.05)
    second = await collect(executions, "k", work, "again")
    assert runs == ["begun", "gone", "begun"] and second[-1].io_snippet == "done"
    assert await stop
    with pytest.raises(CancelledError):
        await first


async def test_a_call_that_came_again_is_stopped_with_the_stream_that_it_left_behind(make):
    executions, work = make(), Counter(60)
    calls = []
    for _ in range(2):  # the first stream is broken, and its server has not noticed yet
        calls.append(asyncio.create_task(collect(executions, "k", work, "j-1/compile/int8/1")))
        await asyncio.sleep(0.05)
    assert await executions.cancel("j-1/compile/int8/1")
    assert work.started == work.cancelled == 1
    for call in calls:
        with pytest.raises(CancelledError):
            await call
    assert not executions._named


async def test_nobody_cancels_what_somebody_else_named(make):
    executions, work = make(), Counter(60)
    as_caller(ANN)
    task = asyncio.create_task(collect(executions, "k", work, "j-1/compile/int8/1"))
    await asyncio.sleep(0.05)
    as_caller(EVE)
    assert not await executions.cancel("j-1/compile/int8/1")
    again = asyncio.create_task(collect(executions, "k", work, "j-1/compile/int8/1"))  # the same name is not the same
    await asyncio.sleep(0.05)
    assert not await executions.cancel("j-1/compile/int8/1")  # ann still waits
    assert work.cancelled == 0
    again.cancel()
    as_caller(Principal("root", frozenset({"admin"})))
    assert await executions.cancel("j-1/compile/int8/1")
    with pytest.raises(CancelledError):
        await task
    as_caller(interceptors.ANONYMOUS)


async def test_a_caller_that_takes_nothing_is_sent_away_and_may_come_back(make, monkeypatch):
    monkeypatch.setattr(reader.Reader.__init__, "__defaults__", ((), 50))
    executions, begun = make(), asyncio.Event()

    async def work(emitter):
        begun.set()
        for number in range(200):
            emitter.log(f"line {number}")
            await asyncio.sleep(0)
        await asyncio.sleep(0.2)
        return transform_pb2.TransformResult(io_snippet="done")

    slow = executions.run("k", "", transform_pb2.TransformResult, work)
    quick = asyncio.create_task(collect(executions, "k", work))
    await anext(slow)
    await asyncio.sleep(0.05)
    with pytest.raises(UnavailableError) as caught:
        async for _ in slow:
            pass
    assert caught.value.reason == "READER_TOO_SLOW" and caught.value.retryable
    assert (await quick)[-1].io_snippet == "done"
    assert (await collect(executions, "k", work))[-1].io_snippet == "done"


async def test_a_run_whose_only_caller_was_too_slow_ends_after_the_grace(make, monkeypatch):
    monkeypatch.setattr(reader.Reader.__init__, "__defaults__", ((), 50))
    executions, stopped = make(grace_s=0.1), asyncio.Event()

    async def work(emitter):
        try:
            while True:
                emitter.log("line")
                await asyncio.sleep(0)
        finally:
            stopped.set()

    slow = executions.run("k", "", transform_pb2.TransformResult, work)
    await anext(slow)
    await asyncio.wait_for(stopped.wait(), 5)
    await slow.aclose()


async def test_a_call_for_what_is_stored_starts_nothing(make):
    executions, work = make(), Counter()
    interceptors._ONLY_STORED.set(True)
    with pytest.raises(NotFoundError) as caught:
        await collect(executions, "k", work)
    assert caught.value.reason == "RESULT_NOT_STORED" and work.started == 0
    interceptors._ONLY_STORED.set(False)
    await collect(executions, "k", work)
    interceptors._ONLY_STORED.set(True)
    (event,) = await collect(executions, "k", work)
    assert event.execution.cached and work.started == 1
    interceptors._ONLY_STORED.set(False)


async def test_a_result_that_can_t_be_stored_reaches_its_caller_and_is_made_again(make, tmp_path, monkeypatch):
    executions, work = make(), Counter()
    monkeypatch.setattr(stored_results, "id", lambda _result: "full", raising=False)
    (tmp_path / "results" / "k.full.tmp").symlink_to("/dev/full")
    for runs in (1, 2):
        assert (await collect(executions, "k", work))[-1].io_snippet == "done"
        assert work.started == runs
        assert list((tmp_path / "results").glob("*.tmp")) == []


async def test_results_that_nobody_asked_for_lately_go(make, tmp_path):
    work = Counter()
    for key in ("old", "used"):
        await collect(make(), key, work)
        os.utime(tmp_path / f"results/{key}.pb", (1, 1))
    await collect(make(), "used", work)
    (tmp_path / "results/x.1.tmp").write_bytes(b"half")
    assert sweep_results([tmp_path / "results", tmp_path / "none"], time.time() - 60) > 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["used.pb", "x.1.tmp"]


async def test_work_stops_after_the_grace_when_the_last_caller_is_lost(make):
    executions, work = make(grace_s=0.1), Counter(60)
    task = asyncio.create_task(collect(executions, "k", work))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.sleep(0.3)
    assert work.cancelled == 1


async def test_a_caller_who_comes_back_within_the_grace_keeps_the_run(make):
    executions, work = make(grace_s=0.3), Counter(0.5)
    task = asyncio.create_task(collect(executions, "k", work))
    await asyncio.sleep(0.05)
    task.cancel()
    assert (await collect(executions, "k", work))[-1].io_snippet == "done"
    assert work.started == 1


async def test_slots_bound_what_runs_at_the_same_time(make):
    executions, work = make(slots=1), Counter(0.1)
    tasks = [asyncio.create_task(collect(executions, str(k), work)) for k in range(3)]
    await asyncio.sleep(0.05)
    assert work.started == 1
    await asyncio.gather(*tasks)
    assert work.started == 3


async def test_a_failing_work_fails_every_caller(make):
    executions = make()

    async def work(emitter):
        raise ValueError("boom")

    results = await asyncio.gather(*(collect(executions, "k", work) for _ in range(2)), return_exceptions=True)
    assert [str(r) for r in results] == ["boom", "boom"]


def test_key_depends_on_every_part():
    request = transform_pb2.TransformModelRequest()
    other = transform_pb2.TransformModelRequest(spec=transform_pb2.TransformSpec(target="rdk-x5"))
    keys = {
        request_key("a", "1", request),
        request_key("a", "2", request),
        request_key("a", "1", other),
        request_key("a", "1", request, "tool 1"),
        request_key("a1", "", request),
    }
    assert len(keys) == 5


def test_finds_artifacts_at_any_depth():
    result = transform_pb2.TransformResult()
    result.model.sha256 = "a" * 64
    result.failure.log.sha256 = "b" * 64
    assert {r.sha256[0] for r in artifacts_in(result)} == {"a", "b"}


def test_code_version_follows_every_source_but_tests(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.py").write_text("x = 1")
    first = code_version(tmp_path)
    (tmp_path / "sub/a_test.py").write_text("assert True")
    assert code_version(tmp_path) == first
    (tmp_path / "sub/a.py").write_text("x = 2")
    assert code_version(tmp_path) != first
