from __future__ import annotations

from boardlift.cli.job_view import JobView
from boardlift.models import Failure, JobEvent, JobInfo, LogLine, Progress, Stage


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


def test_what_a_stage_waits_for_is_told_once_until_it_moves():
    view = JobView()
    view.update(job(Stage("board", "a", "running")))
    waits = JobEvent(2, stage="board", variant="a", log=LogLine("waiting for the board x: it is offline", "boardlift"))
    assert view.update(waits) == ["board a: waiting for the board x: it is offline"]
    assert view.update(waits) == [] and view.rows["board", "a"].note
    assert view.update(JobEvent(3, stage="board", variant="a", log=LogLine("a tool's line", "hb_mapper"))) == []
    view.update(JobEvent(4, stage="board", variant="a", progress=Progress("warm up", 0.1)))
    assert view.rows["board", "a"].note == ""


def test_history_that_comes_after_the_present_is_no_news():
    view = JobView()
    view.update(job(Stage("ingest", "", "succeeded", attempt=1)))
    assert view.update(JobEvent(1, job=JobInfo("j", "queued", stages=(Stage("ingest", "", "waiting", 0),)))) == []
    assert view.update(job(Stage("ingest", "", "running", attempt=1))) == []
    assert view.job.state == "running" and view.rows["ingest", ""].state == "succeeded"


def test_a_cached_stage_says_so():
    view = JobView()
    assert view.update(job(Stage("check", "", "succeeded", cached=True)))[1] == "check succeeded, from the cache"
