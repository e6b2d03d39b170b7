"""What a job's end means: the exit code of section "exit codes" in the README, and the exception that says the same."""

from __future__ import annotations

from boardlift.errors import BoardliftError, CancelledError, InternalError, InvalidInputError
from boardlift.models import Failure, JobInfo

PASS, FAIL, INPUT_WRONG, INFRASTRUCTURE, CANCELLED, UNDECIDED = range(6)
# Stages whose refusal means that the input can't be used at all, whatever the variant.
_INPUT_STAGES = ("ingest", "transform")


def input_failure(job: JobInfo) -> Failure | None:
    """Return the failure that lies in the user's input, if that ended the job."""
    if job.error and job.error.user_fault:
        return job.error
    failures = (s.failure for s in job.stages if s.stage in _INPUT_STAGES and s.state == "failed" and s.failure)
    return next((failure for failure in failures if failure.user_fault), None)


def exit_code(job: JobInfo) -> int:
    """Return 0 pass, 1 fail, 2 input wrong, 3 infrastructure failed, 4 cancelled, 5 undecided or not ended."""
    if job.state in ("cancelled", "cancelling"):
        return CANCELLED
    if job.done and input_failure(job):
        return INPUT_WRONG
    if job.state == "failed":
        return INFRASTRUCTURE
    if job.state != "succeeded" or job.verdict is None:
        return UNDECIDED
    return {"pass": PASS, "fail": FAIL}.get(job.verdict.outcome, UNDECIDED)


def error_of(job: JobInfo) -> BoardliftError | None:
    """Return the exception for a job that ended without a verdict about the model; None when there is one."""
    code = exit_code(job)
    if code == CANCELLED:
        return CancelledError(f"Job {job.id} was cancelled.", metadata={"job": job.id})
    failure = input_failure(job) if code == INPUT_WRONG else job.error
    if code not in (INPUT_WRONG, INFRASTRUCTURE):
        return None
    kind = InvalidInputError if code == INPUT_WRONG else InternalError
    if failure is None:
        return kind(f"Job {job.id} failed without a reason.", metadata={"job": job.id})
    metadata = {"job": job.id, "subject": failure.subject}
    return kind(failure.message, reason=failure.code, remedy=failure.remedy, metadata=metadata)
