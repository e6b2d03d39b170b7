"""The state machine: tables of transitions, and random walks over lost, late, doubled and reordered events."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from boardlift.v1 import compiler_pb2, job_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from boardlift_orchestrator import machine
from boardlift_orchestrator.events import (
    Arm,
    Broken,
    Cancel,
    Lost,
    Outcome,
    Placed,
    Publish,
    PurgeTasks,
    Started,
    StopRunning,
    Tick,
    Withdraw,
)
from boardlift_orchestrator.plan_stages import plan_classes, plan_stages
from boardlift_orchestrator.record import (
    Failure,
    JobRecord,
    JobState,
    Ref,
    StageState,
    decode_record,
    encode_record,
)

RESULT = Ref("a" * 64, 1, "x")
NO = Failure("OPSET_TOO_HIGH", "no", user_fault=True)
FAULT = Failure("UNAVAILABLE", "gone")


def spec(*variants: str, skip_board: bool = False) -> job_pb2.JobSpec:
    presets = {"a": "int8", "b": "int16", "c": "mixed"}
    return job_pb2.JobSpec(
        target="rdk-x5",
        skip_board=skip_board,
        variants=[compiler_pb2.VariantSpec(name=name, preset=presets[name]) for name in variants],
    )


def new_job(*variants: str, skip_board: bool = False) -> machine.Step:
    wanted = spec(*(variants or ("a",)), skip_board=skip_board)
    job = JobRecord("j", RESULT, 0.0, 1000.0, plan_stages(wanted), classes=plan_classes(wanted))
    return machine.begin(job, 0.0)


def published(step: machine.Step) -> list[str]:
    return [action.key for action in step.actions if isinstance(action, Publish)]


def done(job: JobRecord, key: str, now: float = 1.0, **fields: Any) -> machine.Step:
    stage, _, variant = key.partition("/")
    current = job.find(stage, variant)
    assert current is not None
    fields.setdefault("result", RESULT)
    fields.setdefault("attempt", current.attempt)
    return machine.step(job, Outcome(stage, variant, **fields), now)


def run_to(job: JobRecord, *keys: str) -> machine.Step:
    step = machine.Step(job)
    for key in keys:
        step = done(step.job, key)
    return step


def test_a_new_job_hands_out_ingest_and_arms_its_deadline() -> None:
    step = new_job()
    assert published(step) == ["ingest/"]
    assert Arm("deadline", 1000.0) in step.actions
    assert step.job.state is JobState.QUEUED


def test_one_precision_shares_the_transform_and_several_do_not() -> None:
    assert [s.key for s in new_job("a").job.stages[:3]] == ["ingest/", "transform/", "check/"]
    keys = [s.key for s in new_job("a", "b", "c").job.stages]
    assert keys[1:4] == ["transform/int8", "transform/int16", "transform/any"]
    assert new_job("a", "b").job.find("compile", "b").after == "check/int16"  # type: ignore[union-attr]


def test_stages_follow_in_order_and_the_job_ends_with_its_verdict() -> None:
    order = ["ingest/", "transform/", "check/", "compile/a", "simulate/a", "board/a", "verdict/"]
    step = new_job()
    for key, following in zip(order, [*order[1:], None], strict=True):
        step = done(step.job, key)
        assert published(step) == ([following] if following else [])
    assert step.job.state is JobState.SUCCEEDED


def test_variants_run_side_by_side_and_the_verdict_waits_for_all() -> None:
    step = run_to(new_job("a", "b").job, "ingest/")
    assert published(step) == ["transform/int8", "transform/int16"]
    step = run_to(step.job, "transform/int8", "check/int8", "compile/a", "simulate/a", "board/a")
    assert published(step) == []
    step = run_to(step.job, "transform/int16", "check/int16", "compile/b", "simulate/b", "board/b")
    assert published(step) == ["verdict/"]


@pytest.mark.parametrize("key", ["ingest/", "transform/", "check/", "compile/a", "simulate/a", "board/a"])
def test_a_tool_that_says_no_skips_what_follows_and_still_leads_to_a_verdict(key: str) -> None:
    order = ["ingest/", "transform/", "check/", "compile/a", "simulate/a", "board/a"]
    step = run_to(new_job().job, *order[: order.index(key)])
    step = done(step.job, key, failure=NO)
    assert published(step) == ["verdict/"]
    states = [step.job.find(*item.split("/")).state for item in order]  # type: ignore[union-attr]
    place = order.index(key)
    assert states[place] is StageState.FAILED
    assert set(states[place + 1 :]) <= {StageState.SKIPPED}
    assert done(step.job, "verdict/").job.state is JobState.SUCCEEDED


def test_one_refused_variant_leaves_the_other_alone() -> None:
    step = run_to(new_job("a", "b").job, "ingest/", "transform/int8", "transform/int16", "check/int8", "check/int16")
    step = done(step.job, "compile/a", failure=NO)
    assert published(step) == []
    assert published(done(step.job, "compile/b")) == ["simulate/b"]


def test_a_fault_is_tried_again_later_with_the_next_attempt_then_fails_the_job() -> None:
    step = run_to(new_job().job, "ingest/")
    delays = []
    for attempt in range(1, machine.MAX_FAULTS):
        step = done(step.job, "transform/", attempt=attempt, result=None, failure=FAULT, retryable=True)
        (action,) = (item for item in step.actions if isinstance(item, Publish))
        assert action.attempt == attempt + 1
        delays.append(action.delay_s)
    assert delays == sorted(delays) and delays[0] >= 1
    step = done(step.job, "transform/", result=None, failure=FAULT, retryable=True)
    assert step.job.state is JobState.FAILED
    assert step.job.error is not None and step.job.error.code == "UNAVAILABLE"
    assert {PurgeTasks(), StopRunning()} <= set(step.actions)


def test_a_tool_that_breaks_is_tried_again_once_then_leads_to_a_verdict() -> None:
    step = run_to(new_job().job, "ingest/", "transform/", "check/")
    step = done(step.job, "compile/a", failure=FAULT)
    assert [(item.key, item.attempt) for item in step.actions if isinstance(item, Publish)] == [("compile/a", 2)]
    assert published(done(step.job, "compile/a")) == ["simulate/a"]
    step = done(step.job, "compile/a", failure=FAULT)
    assert published(step) == ["verdict/"]


def test_a_tool_that_breaks_before_any_variant_fails_the_job() -> None:
    step = run_to(new_job().job, "ingest/", "transform/")
    step = done(done(step.job, "check/", failure=FAULT).job, "check/", failure=FAULT)
    assert step.job.state is JobState.FAILED and step.job.error == FAULT


def test_a_board_on_which_it_broke_is_avoided_next_time() -> None:
    step = run_to(new_job().job, "ingest/", "transform/", "check/", "compile/a", "simulate/a")
    step = done(step.job, "board/a", worker="b1", result=None, failure=FAULT, retryable=True)
    step = done(step.job, "board/a", worker="b2", result=None, failure=FAULT, retryable=True)
    assert step.job.find("board", "a").avoid == ("b1", "b2")  # type: ignore[union-attr]
    assert decode_record(encode_record(step.job)) == step.job


def test_the_user_s_fault_in_the_call_is_not_tried_again() -> None:
    step = done(new_job().job, "ingest/", result=None, failure=NO)
    assert published(step) == ["verdict/"]


def test_a_fault_that_no_retry_helps_fails_the_job() -> None:
    step = done(new_job().job, "ingest/", result=None, failure=FAULT)
    assert step.job.state is JobState.FAILED


@pytest.mark.parametrize("attempt", [0, 1, 3])
def test_outcomes_of_other_attempts_are_dropped(attempt: int) -> None:
    step = done(new_job().job, "ingest/", result=None, failure=FAULT, retryable=True)
    again = done(step.job, "ingest/", attempt=attempt)
    assert again.job is step.job
    assert published(again) == ["ingest/"]  # repairs a crash between the write and the publish


def test_a_doubled_outcome_changes_nothing() -> None:
    step = done(new_job().job, "ingest/")
    again = machine.step(step.job, Outcome("ingest", "", 1, result=RESULT), 2.0)
    assert again.job is step.job
    assert published(again) == ["transform/"]


def test_what_somebody_has_begun_is_not_queued_again() -> None:
    step = machine.step(new_job().job, Started("ingest", "", 1, "w"), 1.0)
    assert step.job.state is JobState.RUNNING
    assert machine.step(step.job, Tick(), 50.0).actions == ()


def test_starting_what_nobody_wants_is_stopped() -> None:
    job = done(new_job().job, "ingest/", result=None, failure=FAULT, retryable=True).job
    assert machine.step(job, Started("ingest", "", 1, "w"), 1.0).actions == (StopRunning("ingest/", 1),)
    ended = done(new_job().job, "ingest/", result=None, failure=FAULT).job
    assert machine.step(ended, Started("ingest", "", 1, "w"), 1.0).actions == (StopRunning("ingest/", 1),)
    finished = done(new_job().job, "ingest/").job
    assert machine.step(finished, Started("ingest", "", 1, "w"), 1.0).actions == ()


def test_a_task_that_kills_its_workers_fails_the_job() -> None:
    job = new_job().job
    for _ in range(machine.MAX_STARTS + 1):
        job = machine.step(job, Started("ingest", "", 1, "w"), 1.0).job
    assert job.error is not None and job.error.code == "WORKERS_KEEP_DYING"


def test_cancel_of_a_queued_job_ends_it_at_once() -> None:
    step = machine.step(new_job().job, Cancel(), 1.0)
    assert step.job.state is JobState.CANCELLED
    assert {PurgeTasks(), StopRunning()} <= set(step.actions)


def test_cancel_waits_for_the_worker_then_gives_up_on_it() -> None:
    job = machine.step(new_job().job, Started("ingest", "", 1, "w"), 1.0).job
    step = machine.step(job, Cancel(), 2.0)
    assert step.job.state is JobState.CANCELLING
    reported = machine.step(step.job, Outcome("ingest", "", 1, cancelled=True), 3.0)
    assert reported.job.state is JobState.CANCELLED
    early = machine.step(step.job, Tick(), 3.0)
    assert early.job.state is JobState.CANCELLING and early.actions == (StopRunning(),)
    for later in (2.0 + machine.CANCEL_GRACE_S, -3600.0):  # the clock may be set back meanwhile
        late = machine.step(step.job, Tick(), later)
        assert late.job.state is JobState.CANCELLED


def test_the_deadline_fails_the_job_whatever_comes() -> None:
    step = machine.step(new_job().job, Tick(), 1000.0)
    assert step.job.state is JobState.FAILED
    assert step.job.error is not None and step.job.error.code == "JOB_DEADLINE_EXCEEDED"


def test_a_lost_board_s_task_goes_to_another_one() -> None:
    step = run_to(new_job().job, "ingest/", "transform/", "check/", "compile/a", "simulate/a")
    job = machine.step(step.job, Placed("board", "a", 1, "id.b1"), 2.0).job
    step = machine.step(job, Lost("board", "a", 1), 3.0)
    assert Withdraw("board/a", "id.b1") in step.actions
    assert Publish("board/a", 2) in step.actions
    assert step.job.find("board", "a").place == ""  # type: ignore[union-attr]
    assert machine.step(step.job, Lost("board", "a", 1), 4.0).job is step.job


def test_skipping_the_board_is_planned_from_the_start() -> None:
    step = run_to(new_job(skip_board=True).job, "ingest/", "transform/", "check/", "compile/a")
    assert published(done(step.job, "simulate/a")) == ["verdict/"]


def test_a_broken_job_fails_with_the_reason() -> None:
    step = machine.step(new_job().job, Broken(FAULT), 1.0)
    assert step.job.state is JobState.FAILED and step.job.error == FAULT


def test_records_survive_json_and_stay_small() -> None:
    long = Failure("X", "m" * 5000, evidence=("e" * 5000,) * 50, log=RESULT, user_fault=True)
    wanted = job_pb2.JobSpec(variants=[compiler_pb2.VariantSpec(name=f"v{i}", preset="int8") for i in range(16)])
    job = machine.begin(JobRecord("j", RESULT, 0.0, 9.0, plan_stages(wanted), classes=plan_classes(wanted)), 0.0).job
    assert decode_record(encode_record(job)) == job
    for index in range(3):
        job = done(job, ["ingest/", "transform/", "check/"][index]).job
    for index in range(16):
        job = done(job, f"compile/v{index}", failure=long).job
    assert decode_record(encode_record(job)) == job
    assert len(encode_record(job)) < 64 * 1024


class World:
    """A model of queue, workers and crashes: messages are lost never, doubled and reordered at will."""

    def __init__(self, rng: random.Random, variants: tuple[str, ...]) -> None:
        self.rng = rng
        self.now = 0.0
        self.tasks: list[tuple[str, int]] = []
        self.reports: list[Any] = []
        self.finished: dict[str, tuple[int, Ref | None]] = {}
        first = new_job(*variants)
        self.job = first.job
        self.perform(first)

    def perform(self, step: machine.Step, crash: bool = False) -> None:
        """Take over the record; a crash loses the actions, which redelivery must repair."""
        for stage in step.job.stages:
            if stage.key in self.finished:
                assert self.finished[stage.key] == (stage.attempt, stage.result), "a finished stage changed"
            elif stage.state is StageState.SUCCEEDED:
                assert stage.result == Ref(f"{stage.key}:{stage.attempt}"), "a result of another attempt was taken"
                self.finished[stage.key] = (stage.attempt, stage.result)
        self.job = step.job
        if crash:
            return
        for action in step.actions:
            if isinstance(action, Publish):
                current = next(s for s in self.job.stages if s.key == action.key)
                assert action.key not in self.finished, "a finished stage was queued again"
                assert current.state is StageState.RUNNING and current.attempt == action.attempt
                if (action.key, action.attempt) not in self.tasks or self.rng.random() < 0.3:
                    self.tasks.append((action.key, action.attempt))
            elif isinstance(action, PurgeTasks):
                self.tasks.clear()

    def work(self) -> None:
        """A worker takes a task; it may die before or after its report, then the task stays."""
        key, attempt = self.rng.choice(self.tasks)
        stage, _, variant = key.partition("/")
        if self.rng.random() < 0.7:
            self.reports.append(Started(stage, variant, attempt, "w"))
        if self.rng.random() < 0.2:
            return
        roll = self.rng.random()
        if roll < 0.75:
            outcome = Outcome(stage, variant, attempt, "w", result=Ref(f"{key}:{attempt}"))
        elif roll < 0.85:
            outcome = Outcome(stage, variant, attempt, "w", result=RESULT, failure=self.rng.choice([NO, FAULT]))
        else:
            outcome = Outcome(stage, variant, attempt, "w", failure=FAULT, retryable=True)
        self.reports.append(outcome)
        if self.rng.random() < 0.8:
            self.tasks.remove((key, attempt))

    def report(self) -> None:
        """An orchestrator takes a report; it may crash after the write and before the rest, then the report stays."""
        event = self.rng.choice(self.reports)
        crash = self.rng.random() < 0.15
        self.perform(machine.step(self.job, event, self.now), crash)
        if not crash and self.rng.random() < 0.85:
            self.reports.remove(event)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32), variants=st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]), cancel=st.booleans()
)
def test_no_interleaving_runs_a_finished_stage_again_or_loses_a_job(
    seed: int, variants: tuple[str, ...], cancel: bool
) -> None:
    world = World(random.Random(seed), variants)
    cancel_at = world.rng.randrange(60) if cancel else -1
    for turn in range(2000):
        if world.job.state.ended and not world.reports and not world.tasks:
            break
        world.now = min(world.now + 0.1, 900.0)
        if turn == cancel_at:
            world.perform(machine.step(world.job, Cancel(), world.now))
        choices = ([world.work] if world.tasks else []) + ([world.report] if world.reports else [])
        if choices:
            world.rng.choice(choices)()
        else:  # the sweeper
            world.now = min(world.now + 10, 900.0)
            world.perform(machine.step(world.job, Tick(), world.now))
    assert world.job.state.ended, world.job
    if world.job.state is JobState.SUCCEEDED:
        assert all(stage.state.ended for stage in world.job.stages)
    if cancel and turn > cancel_at + 1 and world.job.cancel_asked:
        assert world.job.state in (JobState.CANCELLED, JobState.SUCCEEDED)
    assert decode_record(encode_record(world.job)) == world.job


def test_events_after_the_end_change_nothing() -> None:
    job = dataclasses.replace(new_job().job, state=JobState.SUCCEEDED)
    for event in (Cancel(), Tick(), Outcome("ingest", "", 1, result=RESULT), Broken(FAULT), Lost("board", "a", 1)):
        step = machine.step(job, event, 5000.0)
        assert step.job is job and step.actions == ()
