"""The state machine of a job: (record, event) -> (record, actions). Pure.

Delivery is at least once and in any order, so every event may come twice, late or not at all. What counts is the
record: an outcome is taken only when its stage runs and its attempt is the current one; everything else changes nothing
and asks only for what the record says anyway (`repair`). A stage that has ended never runs again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from boardlift_orchestrator.events import (
    Action,
    Admit,
    Arm,
    Broken,
    Cancel,
    Disarm,
    Event,
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
from boardlift_orchestrator.record import Failure, JobRecord, JobState, Stage, StageState, trim_failure

MAX_FAULTS: Final = 5
"""Attempts of one stage that may end by a fault of the machinery."""
MAX_TOOL_FAULTS: Final = 2
"""Attempts of one stage in which the tool itself may break; then its variant stays undecided, or the job fails."""
MORE_TIME = "Give the job more time (`--limit`), or fewer variants."
LOOK_AT_WORKERS = "Look into the log of the service that runs this stage, then submit the job again."
MAX_STARTS: Final = 10
"""Workers that may die over one attempt."""
CANCEL_GRACE_S: Final = 8.0
"""Seconds after which a cancelled job ends even when a worker does not answer."""
_CLOCKS_S: Final = 60.0
"""Clocks of two orchestrators may differ by so much."""
_SHARED: Final = ("ingest", "transform", "check")
_BACKOFF_S: Final = (1.0, 3.0, 8.0, 20.0)


@dataclass(frozen=True)
class Step:
    """What came of an event. The job's watchers are told whenever the record changed."""

    job: JobRecord
    actions: tuple[Action, ...] = ()


def begin(job: JobRecord, now: float) -> Step:
    """Hand out the first stage of a new job, unless it waits for its turn."""
    if job.held:
        return _changed(job, now)
    step = _advance(dataclasses.replace(job, changed=now), now)
    return Step(step.job, (*step.actions, Arm("deadline", max(1.0, job.deadline - now))))


def step(job: JobRecord, event: Event, now: float) -> Step:
    """Apply one event."""
    if job.state.ended:
        return _after_the_end(job, event)
    if isinstance(event, Broken):
        return _fail(job, event.failure, now)
    if isinstance(event, Cancel):
        return _cancel(job, now)
    if isinstance(event, Admit):
        return _admit(job, now)
    if now >= job.deadline and not job.held and job.state is not JobState.CANCELLING:
        return _fail(job, Failure("JOB_DEADLINE_EXCEEDED", "The job's time is over.", remedy=MORE_TIME), now)
    if isinstance(event, Tick):
        return _tick(job, now)
    stage = job.find(event.stage, event.variant)
    current = stage is not None and stage.state is StageState.RUNNING and stage.attempt == event.attempt
    if stage is None or not current:
        if isinstance(event, Started):
            return _unwanted_start(job, event, stage)
        return Step(job, repair(job) if isinstance(event, Outcome) else ())
    if isinstance(event, Started):
        return _started(job, stage, event, now)
    if isinstance(event, Placed):
        return _changed(job.replace_stage(dataclasses.replace(stage, place=event.place)), now)
    if isinstance(event, Lost):
        return _lost(job, stage, now)
    return _ended(job, stage, event, now)


def _admit(job: JobRecord, now: float) -> Step:
    """Begin a job whose turn has come; its time runs from now on."""
    if not job.held or job.state is not JobState.QUEUED:
        return Step(job, repair(job))
    return begin(dataclasses.replace(job, held=False, deadline=now + job.deadline - job.created), now)


def repair(job: JobRecord) -> tuple[Action, ...]:
    """Return what the record says should be queued but nobody has begun. Repeating it is harmless."""
    if job.state.ended:
        return ()
    return tuple(
        Publish(item.key, item.attempt, _backoff_s(item.faults))
        for item in job.stages
        if item.state is StageState.RUNNING and not item.worker
    )


def _after_the_end(job: JobRecord, event: Event) -> Step:
    if not isinstance(event, Started):
        return Step(job)
    stage = job.find(event.stage, event.variant)
    return _unwanted_start(job, event, stage)


def _unwanted_start(job: JobRecord, event: Started, stage: Stage | None) -> Step:
    """Stop a worker that began something nobody wants, unless it is only the echo of a finished stage."""
    if stage is not None and stage.state is StageState.SUCCEEDED and stage.attempt == event.attempt:
        return Step(job)
    return Step(job, (StopRunning(f"{event.stage}/{event.variant}", event.attempt),))


def _started(job: JobRecord, stage: Stage, event: Started, now: float) -> Step:
    starts = stage.starts + 1
    if starts > MAX_STARTS:
        message = f"{starts - 1} workers died over the stage {stage.stage}."
        return _fail(job, Failure("WORKERS_KEEP_DYING", message, subject=stage.key, remedy=LOOK_AT_WORKERS), now)
    job = job.replace_stage(dataclasses.replace(stage, worker=event.worker, starts=starts, begun=now))
    if job.state is JobState.QUEUED:
        job = dataclasses.replace(job, state=JobState.RUNNING, started=now)
    return _changed(job, now)


def _ended(job: JobRecord, stage: Stage, event: Outcome, now: float) -> Step:
    if job.state is JobState.CANCELLING:
        job = job.replace_stage(dataclasses.replace(stage, state=StageState.CANCELLED, end=now))
        return _finish_cancel(job, now)
    machinery = event.result is None
    if machinery and (event.cancelled or event.retryable):
        return _retry(job, stage, event, now)
    broken = event.failure is not None and not event.failure.user_fault
    if broken and not machinery and stage.faults + 1 < MAX_TOOL_FAULTS:
        return _retry(job, stage, event, now)
    failure = trim_failure(event.failure) if event.failure else None
    if machinery and failure is None:
        failure = Failure(
            "OUTCOME_EMPTY", "The worker reported neither a result nor a failure.", remedy=LOOK_AT_WORKERS
        )
    done = dataclasses.replace(
        stage,
        state=StageState.FAILED if failure else StageState.SUCCEEDED,
        worker=event.worker or stage.worker,
        result=event.result,
        failure=failure,
        cached=event.cached,
        end=now,
    )
    job = dataclasses.replace(job.replace_stage(done), started=job.started or now)
    if failure and (stage.stage == "verdict" or (not failure.user_fault and (machinery or stage.stage in _SHARED))):
        return _fail(job, failure, now)
    return _advance(dataclasses.replace(job, state=JobState.RUNNING), now)


def _retry(job: JobRecord, stage: Stage, event: Outcome, now: float) -> Step:
    faults = stage.faults + 1
    stopped = Failure("STAGE_STOPPED", "The stage was stopped by somebody else.", remedy="Submit the job again.")
    failure = trim_failure(event.failure or stopped)
    if faults >= MAX_FAULTS:
        failed = dataclasses.replace(stage, state=StageState.FAILED, failure=failure, faults=faults, end=now)
        return _fail(job.replace_stage(failed), failure, now)
    avoid = tuple(dict.fromkeys((*stage.avoid, event.worker))) if stage.stage == "board" and event.worker else ()
    again = dataclasses.replace(
        stage, attempt=stage.attempt + 1, faults=faults, starts=0, worker="", place="", failure=failure, avoid=avoid
    )
    return _changed(job.replace_stage(again), now, Publish(again.key, again.attempt, _backoff_s(faults)))


def _lost(job: JobRecord, stage: Stage, now: float) -> Step:
    again = dataclasses.replace(stage, attempt=stage.attempt + 1, starts=0, worker="", place="")
    actions: list[Action] = [Withdraw(stage.key, stage.place)] if stage.place else []
    actions += [StopRunning(stage.key, stage.attempt), Publish(again.key, again.attempt)]
    return _changed(job.replace_stage(again), now, *actions)


def _advance(job: JobRecord, now: float) -> Step:
    """Hand out every stage whose turn has come; skip those whose turn never comes."""
    actions: list[Action] = []
    for item in job.stages:  # in order: a skip is seen by the stages after it
        stage = job.find(item.stage, item.variant)
        if stage is None or stage.state is not StageState.WAITING:
            continue
        state = _turn(job, stage)
        if state is StageState.RUNNING:
            job = job.replace_stage(dataclasses.replace(stage, state=state, attempt=1, start=now))
            actions.append(Publish(stage.key, 1))
        elif state is StageState.SKIPPED:
            job = job.replace_stage(dataclasses.replace(stage, state=state, end=now))
    if job.stages[-1].state is StageState.SUCCEEDED:
        job = dataclasses.replace(job, state=JobState.SUCCEEDED, ended=now)
        actions.append(Disarm("deadline"))
    return _changed(job, now, *actions)


def _turn(job: JobRecord, stage: Stage) -> StageState:
    if stage.after == "*":
        others = all(item.state.ended for item in job.stages if item.key != stage.key)
        return StageState.RUNNING if others else StageState.WAITING
    if not stage.after:
        return StageState.RUNNING
    needed = next(item.state for item in job.stages if item.key == stage.after)
    if needed is StageState.SUCCEEDED:
        return StageState.RUNNING
    return StageState.SKIPPED if needed.ended else StageState.WAITING


def _cancel(job: JobRecord, now: float) -> Step:
    if job.state is JobState.CANCELLING:
        return Step(job, (StopRunning(),))
    stages = tuple(
        dataclasses.replace(item, state=StageState.CANCELLED, end=now)
        if item.state is StageState.WAITING or (item.state is StageState.RUNNING and not item.worker)
        else item
        for item in job.stages
    )
    job = dataclasses.replace(job, state=JobState.CANCELLING, cancel_asked=now, stages=stages)
    done = _finish_cancel(job, now)
    return Step(done.job, (PurgeTasks(), StopRunning(), Arm("cancel", CANCEL_GRACE_S + 1.0)))


def _finish_cancel(job: JobRecord, now: float, force: bool = False) -> Step:
    running = [item for item in job.stages if item.state is StageState.RUNNING]
    if running and not force:
        return _changed(job, now)
    for item in running:
        job = job.replace_stage(dataclasses.replace(item, state=StageState.CANCELLED, end=now))
    return _changed(dataclasses.replace(job, state=JobState.CANCELLED, ended=now), now)


def _tick(job: JobRecord, now: float) -> Step:
    if job.state is JobState.CANCELLING:
        if not -_CLOCKS_S <= now - job.cancel_asked < CANCEL_GRACE_S:  # or the clock was set back since
            done = _finish_cancel(job, now, force=True)
            return Step(done.job, (PurgeTasks(), StopRunning()))
        return Step(job, (StopRunning(),))
    return Step(job, repair(job))


def _fail(job: JobRecord, failure: Failure, now: float) -> Step:
    stages = tuple(
        item
        if item.state.ended
        else dataclasses.replace(
            item, state=StageState.CANCELLED if item.state is StageState.RUNNING else StageState.SKIPPED, end=now
        )
        for item in job.stages
    )
    job = dataclasses.replace(job, state=JobState.FAILED, error=trim_failure(failure), ended=now, stages=stages)
    return _changed(job, now, PurgeTasks(), StopRunning())


def _changed(job: JobRecord, now: float, *actions: Action) -> Step:
    return Step(dataclasses.replace(job, changed=now, revision=job.revision + 1), actions)


def _backoff_s(faults: int) -> float:
    return 0.0 if faults == 0 else _BACKOFF_S[min(faults, len(_BACKOFF_S)) - 1]
