from __future__ import annotations

import pytest

from boardlift._outcome import error_of, exit_code
from boardlift._retry import Retry
from boardlift.errors import CancelledError, InternalError, InvalidInputError, UnavailableError
from boardlift.models import Failure, JobInfo, Stage, Verdict

USER = Failure("BAD_MODEL", "no", user_fault=True)
OURS = Failure("DISK_FULL", "no")


@pytest.mark.parametrize(
    ("job", "code", "error"),
    [
        (JobInfo("j", "succeeded", verdict=Verdict("pass")), 0, None),
        (JobInfo("j", "succeeded", verdict=Verdict("fail")), 1, None),
        (JobInfo("j", "succeeded", verdict=Verdict("undecided")), 5, None),
        (JobInfo("j", "succeeded"), 5, None),
        (JobInfo("j", "running"), 5, None),
        (JobInfo("j", "cancelled"), 4, CancelledError),
        (JobInfo("j", "failed", error=USER), 2, InvalidInputError),
        (JobInfo("j", "failed", error=OURS), 3, InternalError),
        (JobInfo("j", "failed"), 3, InternalError),
        (
            JobInfo("j", "succeeded", verdict=Verdict("fail"), stages=(Stage("ingest", "", "failed", failure=USER),)),
            2,
            InvalidInputError,
        ),
        (
            JobInfo("j", "succeeded", verdict=Verdict("fail"), stages=(Stage("compile", "a", "failed", failure=USER),)),
            1,
            None,
        ),
    ],
)
def test_how_a_job_ended_in_codes_and_exceptions(job, code, error):
    assert exit_code(job) == code
    assert type(error_of(job)) is (error or type(None))


def test_pauses_grow_with_jitter_and_end():
    now = [0.0]
    retry = Retry(10, clock=lambda: now[0], seed=1)
    pauses = []
    with pytest.raises(UnavailableError):
        while True:
            pauses.append(retry.pause_s(UnavailableError("away")))
            now[0] += pauses[-1]
    assert 10 <= sum(pauses) < 13 and max(pauses) <= 3 and pauses[0] <= 0.1
    retry.succeeded()
    assert retry.pause_s(UnavailableError("away")) <= 0.1


def test_other_errors_are_raised_at_once():
    with pytest.raises(InternalError):
        Retry().pause_s(InternalError("no"))
