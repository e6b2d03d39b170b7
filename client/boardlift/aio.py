"""The async client: the same calls as `boardlift.Client`, awaited.

async with boardlift.aio.Client() as client:
    model = await client.push_model("policy.onnx")
    job = await client.run(model, "policy.npz", ["int16"], gates=["cosine>=0.99"])
    async for event in job.events():
        ...
    print((await job.wait()).verdict.outcome)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from boardlift import _convert, _requests
from boardlift._aio_job import ArtifactFile, Job
from boardlift._aio_store import Store
from boardlift._arguments import DIAGNOSIS_TIMEOUT_S, JOB_PAGE, PLAN_S, check_state
from boardlift._clone import Changes, changed_spec
from boardlift._deadline import Deadline
from boardlift._requests import Model, RunOptions
from boardlift._watch import Watch
from boardlift.errors import InternalError
from boardlift.models import Artifact, Board, Gate, JobEvent, JobInfo, JobPlan, LogLine, Progress, ServerInfo, Variant
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc

__all__ = ["ArtifactFile", "Client", "Job"]


class Client(Store):
    """A connection to the orchestrator; belongs to one event loop. Arguments and errors as in `boardlift.Client`."""

    def _make_stubs(self, channel: Any) -> None:
        super()._make_stubs(channel)
        self._jobs = job_pb2_grpc.JobServiceStub(channel)
        self._boards = job_pb2_grpc.BoardServiceStub(channel)
        self._server = toolchain_pb2_grpc.ServerServiceStub(channel)

    async def run(
        self,
        model: Model | Path | str,
        data: Any,
        variants: Sequence[Variant | str] = ("int16", "int8"),
        *,
        gates: Sequence[Gate | str] = (),
        request_id: str = "",
        validate_only: bool = False,
        options: RunOptions | None = None,
        **fields: Any,
    ) -> Job:
        """Submit a job and return its handle at once; see `boardlift.Client.run`."""
        parsed = tuple(Gate.parse(gate) if isinstance(gate, str) else gate for gate in gates)
        model = model if isinstance(model, Model) else await self.push_model(model)
        artifact = data if isinstance(data, Artifact) else await self.push_data(data)
        chosen = replace(options or RunOptions(), **fields)
        chosen = replace(chosen, gates=(*chosen.gates, *parsed))
        spec = _requests.job_spec(model, artifact, variants, chosen)
        request = job_pb2.CreateJobRequest(
            spec=spec, request_id=request_id or _requests.new_request_id(), validate_only=validate_only
        )
        return Job(self, _convert.to_job((await self._call(self._jobs.CreateJob, request)).job))

    async def clone(
        self, job_id: str, *, model: Model | Path | str | None = None, data: Any = None, **changes: Any
    ) -> Job:
        """Submit a job again with something changed; see `boardlift.Client.clone`."""
        old = (await self._call(self._jobs.GetJob, job_pb2.GetJobRequest(job_id=job_id))).job.spec
        if model is not None and not isinstance(model, Model):
            model = await self.push_model(model)
        if data is not None and not isinstance(data, Artifact):
            data = await self.push_data(data)
        spec = changed_spec(old, Changes(model=model, data=data, **changes))
        request = job_pb2.CreateJobRequest(spec=spec, request_id=_requests.new_request_id())
        return Job(self, _convert.to_job((await self._call(self._jobs.CreateJob, request)).job))

    async def job(self, job_id: str) -> Job:
        """Return the handle of a job."""
        return Job(self, await self.get_job(job_id))

    async def get_job(self, job_id: str) -> JobInfo:
        """Return a job as it is now."""
        answer = await self._call(self._jobs.GetJob, job_pb2.GetJobRequest(job_id=job_id))
        return _convert.to_job(answer.job)

    async def jobs(self, state: str = "", limit: int = 50) -> AsyncIterator[JobInfo]:
        """Yield jobs, newest first."""
        request = job_pb2.ListJobsRequest(page_size=min(limit, JOB_PAGE), state=check_state(state))
        while limit > 0:
            answer = await self._call(self._jobs.ListJobs, request)
            for job in answer.jobs[:limit]:
                yield _convert.to_job(job)
            limit -= len(answer.jobs)
            request.page_token = answer.next_page_token
            if not answer.next_page_token:
                return

    async def watch(
        self, job_id: str, after_sequence: int = 0, timeout: float | None = None
    ) -> AsyncIterator[JobEvent]:
        """Yield a job's events until it ends; `Job.events` is the usual way."""
        watch, deadline = Watch(job_id, after_sequence, self._retry()), Deadline(timeout)
        while not watch.ended:
            call = self._jobs.WatchJob(watch.request(), timeout=deadline.remaining_s(), metadata=self._metadata)
            try:
                async for message in call:
                    event = watch.receive(message)
                    if event:
                        yield event
                    if watch.ended:
                        return
                await asyncio.sleep(watch.close_stream())
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(watch.pause_s(self._failure(error)))
            finally:
                call.cancel()

    async def cancel_job(self, job_id: str) -> JobInfo:
        """Ask a job to stop."""
        answer = await self._call(self._jobs.CancelJob, job_pb2.CancelJobRequest(job_id=job_id))
        return _convert.to_job(answer.job)

    async def delete_job(self, job_id: str) -> None:
        """Remove a job that has ended; see `boardlift.Client.delete_job`."""
        await self._call(self._jobs.DeleteJob, job_pb2.DeleteJobRequest(job_id=job_id), done_when="JOB_NOT_FOUND")

    async def plan(
        self, model: Model, data: Artifact, variants: Sequence[Variant | str], options: RunOptions | None = None
    ) -> JobPlan:
        """Say what a job would do; see `boardlift.Client.plan`."""
        spec = _requests.job_spec(model, data, variants, options or RunOptions())
        request = job_pb2.PlanJobRequest(spec=spec)
        return _convert.to_plan(await self._call(self._jobs.PlanJob, request, timeout_s=PLAN_S))

    async def diagnose(
        self,
        request: board_agent_pb2.DiagnoseModelRequest,
        *,
        board: str = "",
        on_event: Callable[[Progress | LogLine], None] | None = None,
    ) -> board_agent_pb2.DiagnoseResult:
        """Have a board find out why outputs are wrong; see `boardlift.Client.diagnose`."""
        message = job_pb2.DiagnoseJobRequest(diagnosis=request, board=job_pb2.BoardSelector(id=board))
        call = self._jobs.DiagnoseJob(message, timeout=DIAGNOSIS_TIMEOUT_S, metadata=self._metadata)
        try:
            async for event in call:
                if event.HasField("result"):
                    found: board_agent_pb2.DiagnoseResult = event.result
                    return found
                if on_event and event.HasField("progress"):
                    on_event(_convert.to_progress(event.progress))
                elif on_event and event.HasField("log"):
                    on_event(LogLine(event.log.text, event.log.source))
        except grpc.aio.AioRpcError as error:
            raise self._failure(error) from error
        finally:
            call.cancel()
        raise InternalError("The server ended its answer without a result.", reason="NO_RESULT", remedy="Try again.")

    async def boards(self, labels: Mapping[str, str] | None = None) -> list[Board]:
        """Return the registered boards by id."""
        request, boards = job_pb2.ListBoardsRequest(page_size=1000, labels=labels or {}), []
        while True:
            answer = await self._call(self._boards.ListBoards, request)
            boards += [_convert.to_board(board) for board in answer.boards]
            if not answer.next_page_token:
                return boards
            request.page_token = answer.next_page_token

    async def delete_board(self, board_id: str) -> None:
        """Forget a board that is gone; see `boardlift.Client.delete_board`."""
        request = job_pb2.DeleteBoardRequest(board_id=board_id)
        await self._call(self._boards.DeleteBoard, request, done_when="BOARD_NOT_FOUND")

    async def devices(self, labels: Mapping[str, str] | None = None) -> list[Board]:
        """Alias of `boards`."""
        return await self.boards(labels)

    async def server_info(self) -> ServerInfo:
        """Return what the server says about itself."""
        answer = await self._call(self._server.GetServerInfo, toolchain_pb2.GetServerInfoRequest())
        return _convert.to_server_info(answer)
