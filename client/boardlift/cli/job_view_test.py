from __future__ import annotations

from boardlift.cli.job_view import JobView
from boardlift.models import Failure, JobEvent, JobInfo, Progress, Stage


def job(*stages):
    return JobEvent(1, job=JobInfo("j", "running", stages=stages))


def test_lines_tell_changes_once():
    now = [0.0]
    view = JobView(clock=lambda: now[0])
    assert view.update(job(Stage("compile", "a", "waiting"))) == ["job j running"]
    assert view.update(job(Stage("compile", "a", "running"))) == ["compile a running"]
    step = JobEvent(2, stage="compile", variant="a", progress=Progress("calibrate", 0.25, elapsed_s=2, remaining_s=6))
    assert view.update(step) == ["compile a: calibrate (25%, about 6.0 s left)"]
    assert view.update(step) == []
    row = view.rows["compile", "a"]
    now[0] = 4.0
    assert (view.elapsed_s(row), view.remaining_s(row)) == (6.0, 2.0)
    now[0] = 40.0
    assert view.remaining_s(row) == 0.0
    assert view.update(job(Stage("compile", "a", "running", attempt=2))) == ["compile a running, attempt 2"]
    failed = Stage("compile", "a", "failed", attempt=2, failure=Failure("X", "no"))
    assert view.update(job(failed)) == ["compile a failed, X: no"]
    assert view.update(step) == [] and view.remaining_s(row) is None


def test_history_that_comes_after_the_present_is_no_news():
    view = JobView()
    view.update(job(Stage("ingest", "", "succeeded", attempt=1)))
    assert view.update(JobEvent(1, job=JobInfo("j", "queued", stages=(Stage("ingest", "", "waiting", 0),)))) == []
    assert view.update(job(Stage("ingest", "", "running", attempt=1))) == []
    assert view.job.state == "running" and view.rows["ingest", ""].state == "succeeded"


def test_a_cached_stage_says_so():
    view = JobView()
    assert view.update(job(Stage("check", "", "succeeded", cached=True)))[1] == "check succeeded, from the cache"
