"""Say what a job would do, without creating it: what is stored already, how long the rest took before, who waits.

Each stage's service is asked for the stored result of the very request that the job would make; it starts nothing for
it. Only the check of the dataset runs for real: it is quick, and everything after it depends on it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final, Protocol

import nats.js.errors as jetstream_errors
import structlog
from boardlift.errors import BoardliftError
from boardlift.v1 import job_pb2, queue_pb2
from boardlift_servicekit.dispatcher import describe_error
from boardlift_servicekit.interceptors import current_submitter
from boardlift_servicekit.messaging import TASK_STREAM, board_consumer, pool_consumer, retry
from boardlift_servicekit.stage_calls import is_retryable
from google.protobuf.message import Message
from nats.js import JetStreamContext

from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.index import JobIndex
from boardlift_orchestrator.past_runs import PastRun, expect, runs_of
from boardlift_orchestrator.plan_stages import plan_classes, plan_stages
from boardlift_orchestrator.record import JobRecord, Ref, Stage, StageState
from boardlift_orchestrator.registry import Registry
from boardlift_orchestrator.requests import build_task, needed_results
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.schedule import has_labels

_PAST_JOBS: Final = 60
_SERVICES: Final = {
    "ingest": "transform",
    "transform": "transform",
    "check": "compiler",
    "compile": "compiler",
    "simulate": "compiler",
}
_HERE: Final = Ref("0" * 64)
Answer = job_pb2.StagePlan
_log = structlog.get_logger(__name__)


class StoredRunner(Protocol):
    """Asks a stage service for stored results."""

    async def run(self, task: queue_pb2.StageTask, emit: Any) -> Message:
        """Return the stage's result; NotFoundError when none is stored."""
        ...


class Planner:
    """Makes plans."""

    def __init__(
        self,
        engine: Engine,
        results: Results,
        index: JobIndex,
        registry: Registry,
        js: JetStreamContext,
        services: Mapping[str, StoredRunner],
    ) -> None:
        """Plan by past jobs, boards, and the stage services that are known at the time, by name."""
        self._engine, self._results, self._index, self._registry = engine, results, index, registry
        self._js = js
        self._services = services

    async def plan(self, spec: job_pb2.JobSpec) -> job_pb2.PlanJobResponse:
        """Return the plan of a job whose specification has been checked."""
        lines = await self._index.lines()
        plan = job_pb2.PlanJobResponse(
            stages=await self._stages(spec),
            active_jobs=sum(line.active for line in lines),
            waiting_jobs=sum(line.waiting for line in lines),
            own_waiting_jobs=sum(line.waiting and line.submitter == current_submitter() for line in lines),
        )
        if not spec.skip_board:
            await self._add_boards(plan, spec)
        return plan

    async def _stages(self, spec: job_pb2.JobSpec) -> list[job_pb2.StagePlan]:
        past = await self._past_runs()
        job = JobRecord(
            id=f"p-{uuid.uuid4().hex[:16]}",
            spec=_HERE,
            created=time.time(),
            deadline=time.time() + 600,
            stages=plan_stages(spec),
            classes=plan_classes(spec),
        )
        found: dict[str, Message] = {}
        plans: dict[str, job_pb2.StagePlan] = {}
        for stage in job.stages:
            planned = plans[stage.key] = await self._stage(job, stage, spec, found, plans)
            if stage.key in found:
                job = job.replace_stage(dataclasses.replace(stage, attempt=1, result=_HERE))
            expected = expect(past, spec, stage.stage, stage.variant)
            if expected is not None and planned.answer not in (Answer.ANSWER_CACHED, Answer.ANSWER_SKIPPED):
                planned.duration.CopyFrom(expected.figure)
                planned.past_runs, planned.basis = expected.runs, expected.basis
        return list(plans.values())

    async def _stage(
        self,
        job: JobRecord,
        stage: Stage,
        spec: job_pb2.JobSpec,
        found: dict[str, Message],
        plans: Mapping[str, job_pb2.StagePlan],
    ) -> job_pb2.StagePlan:
        planned = job_pb2.StagePlan(stage=stage.stage, variant=stage.variant)
        before = plans.get(stage.after)
        if stage.state is StageState.SKIPPED or (before and (before.answer == Answer.ANSWER_SKIPPED or _no(before))):
            planned.answer = Answer.ANSWER_SKIPPED
        elif stage.stage not in _SERVICES:
            planned.answer = Answer.ANSWER_ALWAYS_RUNS
        elif before is not None and stage.after not in found:
            unknown = before.answer == Answer.ANSWER_UNKNOWN
            planned.answer = Answer.ANSWER_UNKNOWN if unknown else Answer.ANSWER_AFTER_RUN
        else:
            await self._ask(job, stage, spec, found, planned)
        return planned

    async def _ask(
        self,
        job: JobRecord,
        stage: Stage,
        spec: job_pb2.JobSpec,
        found: dict[str, Message],
        planned: job_pb2.StagePlan,
    ) -> None:
        service = self._services.get(_SERVICES[stage.stage])
        planned.answer = Answer.ANSWER_UNKNOWN
        if service is None:
            return
        needed = {name: found[source.key] for name, source in needed_results(job, stage).items()}
        task = build_task(job, dataclasses.replace(stage, attempt=1), spec, needed)
        try:
            result: Any = await service.run(task, _drop)
        except BoardliftError as error:
            if is_retryable(error):
                return  # it is away, or busy: the plan says that it does not know
            planned.answer = Answer.ANSWER_RUNS
            if error.reason != "RESULT_NOT_STORED":
                planned.failure.CopyFrom(describe_error(error))  # so it would be told to the job
            return
        planned.answer = Answer.ANSWER_ALWAYS_RUNS if stage.stage == "ingest" else Answer.ANSWER_CACHED
        if result.HasField("failure"):
            planned.failure.CopyFrom(result.failure)
        else:
            found[stage.key] = result

    async def _past_runs(self) -> list[PastRun]:
        ended = sorted((line for line in await self._index.lines() if line.state.ended), key=lambda line: -line.ended)
        jobs = await asyncio.gather(*(self._engine.read(line.id) for line in ended[:_PAST_JOBS]))
        runs: list[PastRun] = []
        for job in jobs:
            if job is None:
                continue
            try:
                runs += runs_of(job, await self._results.spec(job))
            except BoardliftError as error:  # its files are gone or damaged: it tells nothing about a new job
                _log.warning("past_job_left_out", job=job.id, reason=error.reason)
        return runs

    async def _add_boards(self, plan: job_pb2.PlanJobResponse, spec: job_pb2.JobSpec) -> None:
        wanted = spec.board
        boards = [
            board
            for board in await self._registry.views()
            if board.target == spec.target and wanted.id in ("", board.id) and has_labels(board.labels, wanted.labels)
        ]
        plan.boards_online = sum(board.online for board in boards)
        plan.boards_free = sum(board.usable and not board.busy_job for board in boards)
        names = [board_consumer(board.id) for board in boards]
        names += [] if wanted.id or wanted.labels else [pool_consumer(spec.target)]
        plan.board_stages_queued = sum(await asyncio.gather(*(self._queued(name) for name in names)))

    async def _queued(self, consumer: str) -> int:
        try:
            return int((await retry(lambda: self._js.consumer_info(TASK_STREAM, consumer))).num_pending or 0)
        except jetstream_errors.NotFoundError:
            return 0  # no board of this target has ever registered


def _no(plan: job_pb2.StagePlan) -> bool:
    return plan.HasField("failure")


async def _drop(event: Any) -> None:
    """Take no interest in progress."""
