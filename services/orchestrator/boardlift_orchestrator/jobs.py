"""`JobService`: create, look at, list, cancel, follow and diagnose jobs."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

from boardlift.errors import AlreadyExistsError, InvalidInputError, PermissionDeniedError, PreconditionError
from boardlift.v1 import job_pb2, job_pb2_grpc
from boardlift_servicekit.artifacts import missing_error
from boardlift_servicekit.dispatcher import RESULT_MEDIA_TYPE
from boardlift_servicekit.interceptors import caller_is_admin, current_principal, current_submitter
from boardlift_servicekit.names import check_token

from boardlift_orchestrator.admission import Admission
from boardlift_orchestrator.check_boards import GOVERNOR, check_boards, needs_boards
from boardlift_orchestrator.convert import job_state, read_ref
from boardlift_orchestrator.diagnose import QueuedDiagnoses
from boardlift_orchestrator.engine import Engine
from boardlift_orchestrator.events import Cancel
from boardlift_orchestrator.index import JobIndex, JobLine
from boardlift_orchestrator.paging import cut_page, newest_first
from boardlift_orchestrator.plan_job import Planner
from boardlift_orchestrator.plan_stages import plan_classes, plan_stages
from boardlift_orchestrator.record import JobRecord
from boardlift_orchestrator.registry import Registry
from boardlift_orchestrator.results import Results
from boardlift_orchestrator.schedule import describe_wait
from boardlift_orchestrator.validate import check_spec, limit_s
from boardlift_orchestrator.watch import JobFollower, job_not_found

MODEL_MEDIA_TYPE = "application/onnx"


class JobServicer(job_pb2_grpc.JobServiceServicer):
    """Serves jobs."""

    def __init__(
        self,
        engine: Engine,
        results: Results,
        index: JobIndex,
        registry: Registry,
        follower: JobFollower,
        diagnoses: QueuedDiagnoses,
        admission: Admission,
        planner: Planner,
    ) -> None:
        """Drive jobs by `engine`; lists come from `index`; `admission` says when they begin."""
        self._planner = planner
        self._admission = admission
        self._engine = engine
        self._results = results
        self._index = index
        self._registry = registry
        self._follower = follower
        self._diagnoses = diagnoses

    async def CreateJob(self, request: job_pb2.CreateJobRequest, context: Any) -> Any:
        """Create a job; the same request id returns the same job."""
        await self._engine.wait_connected(to_write=True)
        owner = current_principal()
        job_id = _choose_id(request, owner)
        spec = await self._checked(request.spec)
        record = await self._record(job_id, spec, owner, request)
        if request.validate_only:
            return job_pb2.CreateJobResponse(job=await self._results.view(record, with_spec=True))
        stored = await self._admission.create(record)
        if stored.request_id != record.request_id or stored.spec != record.spec or stored.owner != owner:
            raise AlreadyExistsError(
                f"The job {job_id} exists already and is another one.",
                reason="JOB_EXISTS",
                remedy="Leave the job id empty, or choose another one and a new request id.",
                metadata={"job_id": job_id},
            )
        return job_pb2.CreateJobResponse(job=await self._results.view(stored, with_spec=True))

    async def PlanJob(self, request: job_pb2.PlanJobRequest, context: Any) -> Any:
        """Say what a job would do; nothing is created."""
        await self._engine.wait_connected()
        return await self._planner.plan(await self._checked(request.spec))

    async def GetJob(self, request: job_pb2.GetJobRequest, context: Any) -> Any:
        """Return one job."""
        record = await self._find(request.job_id)
        job = await self._results.view(record, with_spec=True)
        await self._say_waits(job)
        return job_pb2.GetJobResponse(job=job)

    async def ListJobs(self, request: job_pb2.ListJobsRequest, context: Any) -> Any:
        """List jobs, newest first."""
        await self._engine.wait_connected()
        wanted = job_state(request.state)
        lines = [item for item in await self._index.lines() if wanted is None or item.state is wanted]
        lines.sort(key=_order)
        page, token = cut_page(lines, _order, request.page_size, request.page_token)
        records = await asyncio.gather(*(self._engine.read(item.id) for item in page))
        jobs = []
        for line, record in zip(page, records, strict=True):
            found = await self._summary(record) if record is not None else None
            if found is None:
                self._index.forget(line.id)
            else:
                jobs.append(found)
        return job_pb2.ListJobsResponse(jobs=jobs, next_page_token=token)

    async def CancelJob(self, request: job_pb2.CancelJobRequest, context: Any) -> Any:
        """Ask a job to stop; one that has ended stays as it is."""
        record = await self._find_own(request.job_id)
        record = await self._engine.apply(record.id, Cancel()) or record
        return job_pb2.CancelJobResponse(job=await self._results.view(record, with_spec=True))

    async def DeleteJob(self, request: job_pb2.DeleteJobRequest, context: Any) -> Any:
        """Remove a job that has ended."""
        record = await self._find_own(request.job_id)
        await self._engine.remove(record.id)
        return job_pb2.DeleteJobResponse()

    async def WatchJob(self, request: job_pb2.WatchJobRequest, context: Any) -> AsyncIterator[job_pb2.WatchJobResponse]:
        """Follow a job until it ends."""
        check_token("job id", request.job_id)
        if request.after_sequence < 0:
            raise InvalidInputError(
                "The sequence can't be negative.",
                reason="SEQUENCE_INVALID",
                remedy="Give the sequence of the last event seen, or 0.",
                metadata={"field": "after_sequence"},
            )
        async for event in self._follower.follow(request.job_id, request.after_sequence):
            yield event

    async def DiagnoseJob(self, request: job_pb2.DiagnoseJobRequest, context: Any) -> AsyncIterator[Any]:
        """Have a board find out why outputs are wrong."""
        record = await self._find(request.diagnosis.job_id)
        target = (await self._results.spec(record)).target
        async for event in self._diagnoses.run(request, target):
            yield event

    async def _checked(self, given: job_pb2.JobSpec) -> job_pb2.JobSpec:
        """Return a copy of a specification that can be run, its model an artifact."""
        spec = job_pb2.JobSpec()
        spec.CopyFrom(given)
        await self._store_inline_model(spec)
        check_spec(spec)
        await self._check_world(spec)
        return spec

    async def _find(self, job_id: str) -> JobRecord:
        check_token("job id", job_id)
        await self._engine.wait_connected()
        record = await self._engine.read(job_id)
        if record is None:
            raise job_not_found(job_id)
        return record

    async def _summary(self, record: JobRecord) -> Any | None:
        """Return a job for a list; None when it was removed, with its files, since the record was read."""
        try:
            return await self._results.summary(record)
        except PreconditionError:
            if await self._engine.read(record.id) is None:
                return None
            raise

    async def _say_waits(self, job: job_pb2.Job) -> None:
        """Note at board stages that nobody has begun what they wait for."""
        running = job_pb2.StageRecord.STATE_RUNNING
        waiting = [s for s in job.stages if s.stage == "board" and s.state == running and not s.worker]
        if waiting:
            needs = GOVERNOR if job.spec.perf.governor else ""
            text = describe_wait(job.spec.board, job.spec.target, await self._registry.views(), needs)
            for stage in waiting:
                stage.note = text

    async def _find_own(self, job_id: str) -> JobRecord:
        """Return a job that the caller may stop or remove."""
        await self._engine.wait_connected(to_write=True)
        record = await self._find(job_id)
        if record.owner not in ("", current_principal()) and not caller_is_admin():
            raise PermissionDeniedError(
                f"The job {record.id} belongs to {record.owner}.",
                reason="NOT_OWNER",
                remedy="Ask its owner, or use a token with the scope admin.",
                metadata={"job_id": record.id},
            )
        return record

    async def _store_inline_model(self, spec: job_pb2.JobSpec) -> None:
        if spec.model.WhichOneof("source") == "inline_model":
            stored = await self._results.store.put_bytes(spec.model.inline_model, MODEL_MEDIA_TYPE)
            spec.model.artifact.CopyFrom(stored)

    async def _check_world(self, spec: job_pb2.JobSpec) -> None:
        """Check what the specification names: artifacts and boards."""
        digests = [spec.model.artifact.sha256, spec.dataset.sha256]
        digests += [item.artifact.sha256 for item in spec.model.external_data]
        missing = await self._results.store.missing(digests)
        if missing:
            raise missing_error(missing[0])
        if spec.board.id and not spec.skip_board:
            check_token("board id", spec.board.id)
            if not await self._registry.knows(spec.board.id):
                raise InvalidInputError(
                    f"No board {spec.board.id} has registered.",
                    reason="BOARD_UNKNOWN",
                    remedy="List the boards with `boardlift boards`.",
                    metadata={"field": "spec.board.id", "board_id": spec.board.id},
                )
        if needs_boards(spec):
            check_boards(spec, await self._registry.views())

    async def _record(
        self, job_id: str, spec: job_pb2.JobSpec, owner: str, request: job_pb2.CreateJobRequest
    ) -> JobRecord:
        stored = await self._results.store.put_bytes(spec.SerializeToString(deterministic=True), RESULT_MEDIA_TYPE)
        now = time.time()
        return JobRecord(
            id=job_id,
            spec=read_ref(stored),
            created=now,
            deadline=now + limit_s(spec),
            stages=plan_stages(spec),
            owner=owner,
            submitter=current_submitter(),
            priority=spec.priority,
            request_id=request.request_id,
            name=spec.display_name,
            classes=plan_classes(spec),
        )


def _choose_id(request: job_pb2.CreateJobRequest, owner: str) -> str:
    if request.request_id:
        try:
            uuid.UUID(request.request_id)
        except ValueError as error:
            raise InvalidInputError(
                "The request id must be a UUID.",
                reason="REQUEST_ID_INVALID",
                remedy="Give a new UUID per job, or none.",
                metadata={"field": "request_id"},
            ) from error
    if request.job_id:
        return check_token("job id", request.job_id)
    if request.request_id:
        return "j-" + hashlib.sha256(f"{owner}/{request.request_id}".encode()).hexdigest()[:16]
    return f"j-{uuid.uuid4().hex[:16]}"


def _order(line: JobLine) -> str:
    return newest_first(line.created, line.id)
