"""Translate between job records and messages. Pure."""

from __future__ import annotations

from typing import Final

from boardlift.v1 import artifact_pb2, job_pb2, queue_pb2, toolchain_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from boardlift_orchestrator.events import Outcome, Started
from boardlift_orchestrator.record import Failure, JobRecord, JobState, Ref, Stage, StageState

_JOB_STATES: Final = {state: getattr(job_pb2.Job, f"STATE_{state.name}") for state in JobState}
_STAGE_STATES: Final = {state: getattr(job_pb2.StageRecord, f"STATE_{state.name}") for state in StageState}
_STATES_BACK: Final = {number: state for state, number in _JOB_STATES.items()}


def job_state(number: int) -> JobState | None:
    """Return the state for its number on the wire; None when unspecified."""
    return _STATES_BACK.get(number)


def job_message(job: JobRecord) -> job_pb2.Job:
    """Return the job without spec, verdict and artifacts, which are artifacts of their own."""
    message = job_pb2.Job(
        id=job.id,
        state=_JOB_STATES[job.state],
        stages=[_stage_message(stage) for stage in job.stages],
        error=failure_message(job.error) if job.error else None,
        owner=job.owner,
        revision=job.revision,
        waiting_turn=job.held and not job.state.ended,
        submitter=job.submitter,
    )
    message.create_time.CopyFrom(_time(job.created))
    if job.started:
        message.start_time.CopyFrom(_time(job.started))
    if job.ended:
        message.end_time.CopyFrom(_time(job.ended))
    return message


def read_outcome(message: queue_pb2.StageOutcome) -> Outcome | Started:
    """Return the event that a worker's report means."""
    if message.started:
        return Started(message.stage, message.variant, message.attempt, message.worker)
    return Outcome(
        stage=message.stage,
        variant=message.variant,
        attempt=message.attempt,
        worker=message.worker,
        result=read_ref(message.result) if message.HasField("result") else None,
        failure=read_failure(message.failure) if message.HasField("failure") else None,
        retryable=message.retryable,
        cancelled=message.cancelled,
        cached=message.cached,
    )


def read_ref(message: artifact_pb2.ArtifactRef) -> Ref:
    """Return an artifact's name."""
    return Ref(message.sha256, message.size_bytes, message.media_type)


def ref_message(ref: Ref) -> artifact_pb2.ArtifactRef:
    """Return an artifact's name as a message."""
    return artifact_pb2.ArtifactRef(sha256=ref.sha256, size_bytes=ref.size_bytes, media_type=ref.media_type)


def read_failure(message: toolchain_pb2.StageFailure) -> Failure:
    """Return a failure."""
    return Failure(
        code=message.code,
        message=message.message,
        subject=message.subject,
        remedy=message.remedy,
        evidence=tuple(message.evidence),
        user_fault=message.user_fault,
        exit_code=message.exit_code,
        transform_pass=message.transform_pass,
        log=read_ref(message.log) if message.HasField("log") else None,
    )


def failure_message(failure: Failure) -> toolchain_pb2.StageFailure:
    """Return a failure as a message."""
    return toolchain_pb2.StageFailure(
        code=failure.code,
        message=failure.message,
        subject=failure.subject,
        remedy=failure.remedy,
        evidence=failure.evidence,
        user_fault=failure.user_fault,
        exit_code=failure.exit_code,
        transform_pass=failure.transform_pass,
        log=ref_message(failure.log) if failure.log else None,
    )


def _stage_message(stage: Stage) -> job_pb2.StageRecord:
    message = job_pb2.StageRecord(
        stage=stage.stage,
        variant=stage.variant,
        state=_STAGE_STATES[stage.state],
        attempt=stage.attempt,
        result=ref_message(stage.result) if stage.result else None,
        failure=failure_message(stage.failure) if stage.failure else None,
        worker=stage.worker,
        cached=stage.cached,
    )
    if stage.start:
        message.start_time.CopyFrom(_time(stage.start))
    if stage.begun:
        message.begin_time.CopyFrom(_time(stage.begun))
    if stage.end:
        message.end_time.CopyFrom(_time(stage.end))
    return message


def _time(seconds: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromNanoseconds(round(seconds * 1e6) * 1000)
    return stamp
