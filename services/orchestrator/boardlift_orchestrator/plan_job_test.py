from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boardlift.errors import BoardliftError, InvalidInputError, NotFoundError, UnavailableError
from boardlift.v1 import job_pb2
from boardlift_servicekit.artifacts import LocalStore

from boardlift_orchestrator.index import JobLine
from boardlift_orchestrator.plan_job import Planner
from boardlift_orchestrator.record import JobRecord, JobState, Ref, Stage, StageState
from boardlift_orchestrator.results import Results

Answer = job_pb2.StagePlan


def planner(folder: Path, error: BoardliftError, past: list[JobRecord]) -> Planner:
    """A planner whose services raise `error`, and who remembers `past`."""

    async def run(task: Any, emit: Any) -> Any:
        raise error

    async def lines() -> list[JobLine]:
        return [JobLine(job.id, job.created, job.state, job.ended) for job in past]

    async def read(job_id: str) -> JobRecord:
        return next(job for job in past if job.id == job_id)

    engine: Any = SimpleNamespace(read=read)
    index: Any = SimpleNamespace(lines=lines)
    other: Any = SimpleNamespace()
    services: Any = dict.fromkeys(("transform", "compiler"), SimpleNamespace(run=run))
    return Planner(engine, Results(LocalStore(folder)), index, other, other, services)


def spec() -> job_pb2.JobSpec:
    made = job_pb2.JobSpec(target="rdk-x5", skip_board=True)
    made.variants.add(name="int8")
    return made


@pytest.mark.parametrize(
    ("error", "answer", "code"),
    [
        (UnavailableError("away"), Answer.ANSWER_UNKNOWN, ""),
        (NotFoundError("no", reason="RESULT_NOT_STORED"), Answer.ANSWER_RUNS, ""),
        (InvalidInputError("bad", reason="DATASET_DAMAGED"), Answer.ANSWER_RUNS, "DATASET_DAMAGED"),
    ],
)
async def test_a_service_that_says_no_is_not_one_that_is_away(
    tmp_path: Path, error: BoardliftError, answer: int, code: str
) -> None:
    first, second, *_ = (await planner(tmp_path, error, []).plan(spec())).stages
    assert (first.stage, first.answer, first.failure.code) == ("ingest", answer, code)
    assert (second.answer == Answer.ANSWER_SKIPPED) is bool(code)


async def test_a_past_job_whose_files_are_gone_spoils_no_plan(tmp_path: Path) -> None:
    stage = Stage("ingest", state=StageState.SUCCEEDED, begun=1.0, end=2.0)
    lost = JobRecord("lost", Ref("0" * 64), 1.0, 9.0, (stage,), state=JobState.SUCCEEDED, ended=3.0)
    plan = await planner(tmp_path, UnavailableError("away"), [lost]).plan(spec())
    assert not any(item.HasField("duration") for item in plan.stages)
