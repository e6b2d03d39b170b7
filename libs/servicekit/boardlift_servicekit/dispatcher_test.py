from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from boardlift.errors import BoardliftError, CancelledError, InternalError, InvalidInputError, UnavailableError
from boardlift.v1 import compiler_pb2, job_pb2, queue_pb2
from nats.aio.msg import Msg

from boardlift_servicekit import dispatcher
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.consume import Consume, Pace, Slots, acknowledge
from boardlift_servicekit.dispatcher import Dispatcher, describe_error, is_meant
from boardlift_servicekit.messaging import OUTCOME_CONSUMER, RESULT_STREAM, publish_stop, publish_task, purge_tasks
from boardlift_servicekit.stage_calls import is_retryable

PACE = Pace(heartbeat_s=0.5, beat_s=0.3)


class Runner:
    """Runs stages in this process, as told."""

    def __init__(self) -> None:
        self.answer: Any = compiler_pb2.CheckResult(bpu_nodes=3)
        self.events: list[Any] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.stopped = False
        self.runs = 0

    async def run(self, task: queue_pb2.StageTask, emit: Any) -> Any:
        self.runs += 1
        for event in self.events:
            await emit(event)
        await self.hold.wait()
        if self.stopped:
            raise CancelledError("stopped")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def stop(self, task: queue_pb2.StageTask) -> None:
        self.stopped = True
        self.hold.set()


class Bench:
    """A dispatcher with everything around it."""

    def __init__(self, client: Any, folder: Path) -> None:
        self.client = client
        self.runner = Runner()
        self.store = LocalStore(folder)
        self.outcomes: list[queue_pb2.StageOutcome] = []
        self.events: list[job_pb2.WatchJobResponse] = []
        self.dispatcher = Dispatcher(
            client, self.store, self.runner, worker="w1", consumers=("compiler",), slots=2, pace=PACE
        )
        self.reports = Consume(client, RESULT_STREAM, OUTCOME_CONSUMER, self.collect, slots=Slots(4), pace=PACE)

    async def start(self) -> None:
        async def on_event(message: Msg) -> None:
            self.events.append(job_pb2.WatchJobResponse.FromString(message.data))

        await self.client.subscribe("evt.job.>", cb=on_event)
        await self.reports.start()
        await self.dispatcher.start()

    async def collect(self, message: Msg) -> None:
        outcome = queue_pb2.StageOutcome.FromString(message.data)
        if not outcome.started:
            self.outcomes.append(outcome)
        await acknowledge(message)

    async def run(self, attempt: int = 1) -> queue_pb2.StageOutcome:
        await self.queue(attempt)
        return await self.outcome()

    async def queue(self, attempt: int = 1, delay_s: float = 0.0, job: str = "j") -> None:
        task = queue_pb2.StageTask(job_id=job, stage="check", attempt=attempt, check=compiler_pb2.CheckModelRequest())
        await publish_task(self.client.jetstream(), task, delay_s=delay_s)

    async def outcome(self, seconds: float = 10.0) -> queue_pb2.StageOutcome:
        for _ in range(int(seconds / 0.02)):
            if self.outcomes:
                return self.outcomes.pop(0)
            await asyncio.sleep(0.02)
        raise TimeoutError


@pytest.fixture
async def bench(client: Any, tmp_path: Path) -> Any:
    made = Bench(client, tmp_path)
    await made.start()
    yield made
    await made.dispatcher.stop()
    await made.reports.stop()


async def test_a_task_becomes_a_stored_result_and_an_outcome(bench: Bench) -> None:
    bench.runner.answer.execution.cached = True
    outcome = await bench.run()
    assert (outcome.job_id, outcome.stage, outcome.attempt, outcome.worker) == ("j", "check", 1, "w1")
    assert outcome.cached and not outcome.HasField("failure")
    stored = (await bench.store.fetch(outcome.result)).read_bytes()
    assert compiler_pb2.CheckResult.FromString(stored).bpu_nodes == 3


async def test_a_tool_that_says_no_is_a_result_with_a_failure(bench: Bench) -> None:
    bench.runner.answer.failure.code = "OPSET_TOO_HIGH"
    outcome = await bench.run()
    assert outcome.failure.code == "OPSET_TOO_HIGH" and outcome.HasField("result") and not outcome.retryable


@pytest.mark.parametrize(
    ("error", "retryable", "user_fault"),
    [
        (UnavailableError("gone"), True, False),
        (InternalError("bug"), True, False),
        (InvalidInputError("bad"), False, True),
    ],
)
async def test_a_call_that_fails_is_an_outcome_without_a_result(
    bench: Bench, error: BoardliftError, retryable: bool, user_fault: bool
) -> None:
    bench.runner.answer = error
    outcome = await bench.run()
    assert not outcome.HasField("result")
    assert (outcome.retryable, outcome.failure.user_fault) == (retryable, user_fault)
    assert outcome.failure.code == error.reason
    assert is_retryable(error) is retryable


async def test_a_fault_of_ours_reaches_the_job_instead_of_going_round_in_the_queue(bench: Bench) -> None:
    bench.runner.answer = OSError("a made-up fault")
    outcome = await bench.run()
    assert outcome.retryable and "OSError" in outcome.failure.message and outcome.failure.remedy
    assert bench.runner.runs == 1


async def test_a_stop_reaches_the_running_stage(bench: Bench) -> None:
    bench.runner.hold.clear()
    await bench.queue()
    while not bench.runner.runs:
        await asyncio.sleep(0.01)
    assert bench.dispatcher.busy_job == "j"
    await publish_stop(bench.client, queue_pb2.StopStage(job_id="other"))
    await publish_stop(bench.client, queue_pb2.StopStage(job_id="j"))
    outcome = await bench.outcome(3.0)
    assert outcome.cancelled and not outcome.HasField("failure")
    await asyncio.sleep(0.1)
    assert bench.dispatcher.busy_job == ""


async def test_the_same_attempt_is_queued_once_and_a_delayed_one_comes_later(bench: Bench) -> None:
    for _ in range(3):
        await bench.queue()
    await bench.outcome()
    await bench.queue(2, delay_s=1.2)
    await asyncio.sleep(0.6)
    assert bench.runner.runs == 1
    assert (await bench.outcome()).attempt == 2
    await asyncio.sleep(0.3)
    assert bench.runner.runs == 2


async def test_a_purged_task_never_runs(bench: Bench) -> None:
    bench.dispatcher.pause()
    await asyncio.sleep(0.7)
    await bench.queue()
    await bench.queue(2, delay_s=1.0)
    await purge_tasks(bench.client.jetstream(), "j")
    await bench.dispatcher.resume()
    await asyncio.sleep(1.6)
    assert bench.runner.runs == 0


async def test_a_stop_that_comes_while_the_start_is_reported_is_not_missed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def report(client: Any, outcome: queue_pb2.StageOutcome) -> None:
        await publish_stop(client, queue_pb2.StopStage(job_id="j"))
        while not bench.dispatcher._stopped:
            await asyncio.sleep(0.01)

    monkeypatch.setattr(dispatcher, "publish_started", report)
    outcome = await bench.run()
    assert outcome.cancelled and not bench.runner.runs


async def test_a_stop_that_hangs_or_fails_holds_up_no_other_and_is_tried_again(bench: Bench) -> None:
    heard: list[str] = []
    hang = asyncio.Event()

    async def stop(task: queue_pb2.StageTask) -> None:
        heard.append(task.job_id)
        if task.job_id == "slow":
            await hang.wait()
        if len(heard) == 1:
            raise UnavailableError("not now")
        await Runner.stop(bench.runner, task)

    bench.runner.stop = stop  # type: ignore[method-assign]
    bench.runner.hold.clear()
    await bench.queue()
    await bench.queue(job="slow")
    while bench.dispatcher.busy_slots < 2:
        await asyncio.sleep(0.01)
    for job in ("slow", "j"):
        await publish_stop(bench.client, queue_pb2.StopStage(job_id=job))
        while job not in heard:
            await asyncio.sleep(0.01)
    heard[:] = ["failed"]
    await publish_stop(bench.client, queue_pb2.StopStage(job_id="slow"))
    outcome = None
    for _ in range(50):
        await publish_stop(bench.client, queue_pb2.StopStage(job_id="j"))
        if bench.outcomes:
            outcome = await bench.outcome()
            break
        await asyncio.sleep(0.1)
    hang.set()
    assert outcome is not None and outcome.job_id == "j" and outcome.cancelled


async def test_more_slots_take_more_at_once_and_fewer_less(bench: Bench) -> None:
    bench.runner.hold.clear()
    bench.dispatcher.resize(3)
    for attempt in range(1, 6):
        await bench.queue(attempt)
    while bench.runner.runs < 3:
        await asyncio.sleep(0.01)
    bench.dispatcher.resize(1)
    await asyncio.sleep(0.6)
    assert bench.runner.runs == 3
    bench.runner.hold.set()
    assert {(await bench.outcome()).attempt for _ in range(5)} == {1, 2, 3, 4, 5}


async def test_a_worker_s_name_must_be_a_token(client: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        Dispatcher(client, LocalStore(tmp_path), Runner(), worker="a.b>", consumers=("compiler",), slots=1)


@pytest.mark.parametrize(
    ("stop", "meant"),
    [
        (queue_pb2.StopStage(job_id="j"), True),
        (queue_pb2.StopStage(job_id="k"), False),
        (queue_pb2.StopStage(job_id="j", stage="check"), False),
        (queue_pb2.StopStage(job_id="j", stage="compile", variant="a"), True),
        (queue_pb2.StopStage(job_id="j", stage="compile", variant="b"), False),
        (queue_pb2.StopStage(job_id="j", stage="compile", variant="a", attempt=1), False),
        (queue_pb2.StopStage(job_id="j", stage="compile", variant="a", attempt=2), True),
    ],
)
def test_a_stop_is_meant_for_its_job_stage_and_attempts(stop: queue_pb2.StopStage, meant: bool) -> None:
    task = queue_pb2.StageTask(job_id="j", stage="compile", variant="a", attempt=2)
    assert is_meant(stop, task) is meant


def test_an_error_keeps_reason_remedy_and_evidence() -> None:
    error = UnavailableError("gone", reason="NATS_UNAVAILABLE", remedy="Start it.", metadata={"servers": "a"})
    failure = describe_error(error)
    assert (failure.code, failure.remedy, list(failure.evidence)) == ("NATS_UNAVAILABLE", "Start it.", ["servers: a"])


async def test_a_task_that_somebody_else_should_have_goes_back_to_the_queue(bench: Bench) -> None:
    asked: list[int] = []

    async def refuse(task: queue_pb2.StageTask) -> bool:
        asked.append(task.attempt)
        return len(asked) == 1

    bench.dispatcher._refuse = refuse
    outcome = await bench.run()
    assert asked == [1, 1] and bench.runner.runs == 1 and outcome.HasField("result")
