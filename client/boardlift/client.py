"""The sync client: models and samples in, jobs and verdicts out.

    client = boardlift.Client()                     # BOARDLIFT_SERVER, else this machine
    model = client.push_model("policy.onnx")
    data = client.push_data("policy.npz")
    job = client.run(model, data, ["int16", "int8"], gates=["cosine>=0.99"], outputs=("actions",))
    print(job.wait().verdict.outcome, job.reasons)
    job.artifacts["report.html"].save()

`boardlift.aio.Client` is its async twin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc

from boardlift import _convert, _requests
from boardlift._arguments import DIAGNOSIS_TIMEOUT_S, JOB_PAGE, PLAN_S, check_state
from boardlift._clone import Changes, changed_spec
from boardlift._deadline import Deadline
from boardlift._job import ArtifactFile, Job
from boardlift._requests import Model, RunOptions
from boardlift._store import Store
from boardlift._watch import Watch
from boardlift.errors import InternalError
from boardlift.models import Artifact, Board, Gate, JobEvent, JobInfo, JobPlan, LogLine, Progress, ServerInfo, Variant
from boardlift.v1 import board_agent_pb2, job_pb2, job_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc

__all__ = ["ArtifactFile", "Client", "Job"]


class Client(Store):
    """A connection to the orchestrator; safe to share between threads, not between processes."""

    def _make_stubs(self, channel: Any) -> None:
        super()._make_stubs(channel)
        self._jobs = job_pb2_grpc.JobServiceStub(channel)
        self._boards = job_pb2_grpc.BoardServiceStub(channel)
        self._server = toolchain_pb2_grpc.ServerServiceStub(channel)

    def run(
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
        """Submit a job and return its handle at once.

        Args:
            model: A pushed model, or the path of one.
            data: A pushed dataset, or anything `push_data` takes.
            variants: Ways to compile: names of presets, texts as `parse_variant` takes them, or `Variant`s.
            gates: Limits, as texts such as "cosine>=0.99" or as `Gate`s.
            request_id: Makes a repeated submission the same job; default is a fresh one per call.
            validate_only: Have the server check the job without creating it.
            options: Everything else of the job.
            **fields: Single fields of `RunOptions`, for short calls; they win over `options`.

        Raises:
            InvalidInputError: Something is wrong with the request.
        """
        parsed = tuple(Gate.parse(gate) if isinstance(gate, str) else gate for gate in gates)
        model = model if isinstance(model, Model) else self.push_model(model)
        artifact = data if isinstance(data, Artifact) else self.push_data(data)
        chosen = replace(options or RunOptions(), **fields)
        chosen = replace(chosen, gates=(*chosen.gates, *parsed))
        spec = _requests.job_spec(model, artifact, variants, chosen)
        request = job_pb2.CreateJobRequest(
            spec=spec, request_id=request_id or _requests.new_request_id(), validate_only=validate_only
        )
        return Job(self, _convert.to_job(self._call(self._jobs.CreateJob, request).job))

    def clone(self, job_id: str, *, model: Model | Path | str | None = None, data: Any = None, **changes: Any) -> Job:
        """Submit a job again with something changed; stages whose inputs stay the same come from the cache.

        Args:
            job_id: Job to repeat.
            model: Another model, pushed or a path.
            data: Another dataset, pushed or anything `push_data` takes.
            **changes: Other fields of `boardlift._clone.Changes`: variants, gates, board, skip_board, name.

        Raises:
            NotFoundError: There is no such job.
            InvalidInputError: A change can't be used.
        """
        old = self._call(self._jobs.GetJob, job_pb2.GetJobRequest(job_id=job_id)).job.spec
        if model is not None and not isinstance(model, Model):
            model = self.push_model(model)
        if data is not None and not isinstance(data, Artifact):
            data = self.push_data(data)
        spec = changed_spec(old, Changes(model=model, data=data, **changes))
        request = job_pb2.CreateJobRequest(spec=spec, request_id=_requests.new_request_id())
        return Job(self, _convert.to_job(self._call(self._jobs.CreateJob, request).job))

    def job(self, job_id: str) -> Job:
        """Return the handle of a job.

        Raises:
            NotFoundError: There is none of this id.
        """
        return Job(self, self.get_job(job_id))

    def get_job(self, job_id: str) -> JobInfo:
        """Return a job as it is now."""
        return _convert.to_job(self._call(self._jobs.GetJob, job_pb2.GetJobRequest(job_id=job_id)).job)

    def jobs(self, state: str = "", limit: int = 50) -> Iterator[JobInfo]:
        """Yield jobs, newest first."""
        request = job_pb2.ListJobsRequest(page_size=min(limit, JOB_PAGE), state=check_state(state))
        while limit > 0:
            answer = self._call(self._jobs.ListJobs, request)
            yield from (_convert.to_job(job) for job in answer.jobs[:limit])
            limit -= len(answer.jobs)
            request.page_token = answer.next_page_token
            if not answer.next_page_token:
                return

    def watch(self, job_id: str, after_sequence: int = 0, timeout: float | None = None) -> Iterator[JobEvent]:
        """Yield a job's events until it ends; `Job.events` is the usual way.

        Raises:
            DeadlineError: `timeout` seconds passed.
        """
        watch, deadline = Watch(job_id, after_sequence, self._retry()), Deadline(timeout)
        while not watch.ended:
            call = self._jobs.WatchJob(watch.request(), timeout=deadline.remaining_s(), metadata=self._metadata)
            try:
                for message in call:
                    event = watch.receive(message)
                    if event:
                        yield event
                    if watch.ended:
                        return
                time.sleep(watch.close_stream())
            except grpc.RpcError as error:
                time.sleep(watch.pause_s(self._failure(error)))
            finally:
                call.cancel()

    def cancel_job(self, job_id: str) -> JobInfo:
        """Ask a job to stop."""
        return _convert.to_job(self._call(self._jobs.CancelJob, job_pb2.CancelJobRequest(job_id=job_id)).job)

    def delete_job(self, job_id: str) -> None:
        """Remove a job that has ended, for good; its files go with the server's next sweep.

        Raises:
            PreconditionError: It has not ended.
        """
        self._call(self._jobs.DeleteJob, job_pb2.DeleteJobRequest(job_id=job_id), done_when="JOB_NOT_FOUND")

    def plan(
        self, model: Model, data: Artifact, variants: Sequence[Variant | str], options: RunOptions | None = None
    ) -> JobPlan:
        """Say what a job would do: what a cache would answer, how long the rest took before, who is before it.

        Args:
            model: The pushed model.
            data: The pushed dataset.
            variants: Ways to compile.
            options: Everything else of the job.

        Raises:
            InvalidInputError: Something is wrong with the job.
        """
        spec = _requests.job_spec(model, data, variants, options or RunOptions())
        return _convert.to_plan(self._call(self._jobs.PlanJob, job_pb2.PlanJobRequest(spec=spec), timeout_s=PLAN_S))

    def diagnose(
        self,
        request: board_agent_pb2.DiagnoseModelRequest,
        *,
        board: str = "",
        on_event: Callable[[Progress | LogLine], None] | None = None,
    ) -> board_agent_pb2.DiagnoseResult:
        """Have a board find out why outputs of a job's model are wrong; it pulls the work and needs no open port.

        Args:
            request: What to look at, from `boardlift._diagnosis.build_request`.
            board: This board only; default any of the job's target.
            on_event: Receives progress and lines.

        Raises:
            PreconditionError: No board can take it now.
        """
        message = job_pb2.DiagnoseJobRequest(diagnosis=request, board=job_pb2.BoardSelector(id=board))
        call = self._jobs.DiagnoseJob(message, timeout=DIAGNOSIS_TIMEOUT_S, metadata=self._metadata)
        try:
            for event in call:
                if event.HasField("result"):
                    found: board_agent_pb2.DiagnoseResult = event.result
                    return found
                if on_event and event.HasField("progress"):
                    on_event(_convert.to_progress(event.progress))
                elif on_event and event.HasField("log"):
                    on_event(LogLine(event.log.text, event.log.source))
        except grpc.RpcError as error:
            raise self._failure(error) from error
        finally:
            call.cancel()
        raise InternalError("The server ended its answer without a result.", reason="NO_RESULT", remedy="Try again.")

    def boards(self, labels: Mapping[str, str] | None = None) -> list[Board]:
        """Return the registered boards by id."""
        request, boards = job_pb2.ListBoardsRequest(page_size=1000, labels=labels or {}), []
        while True:
            answer = self._call(self._boards.ListBoards, request)
            boards += [_convert.to_board(board) for board in answer.boards]
            if not answer.next_page_token:
                return boards
            request.page_token = answer.next_page_token

    def delete_board(self, board_id: str) -> None:
        """Forget a board that is gone; one that comes back registers anew.

        Raises:
            NotFoundError: None has registered under this id.
            PreconditionError: It is online.
        """
        request = job_pb2.DeleteBoardRequest(board_id=board_id)
        self._call(self._boards.DeleteBoard, request, done_when="BOARD_NOT_FOUND")

    def devices(self, labels: Mapping[str, str] | None = None) -> list[Board]:
        """Alias of `boards`."""
        return self.boards(labels)

    def server_info(self) -> ServerInfo:
        """Return what the server says about itself."""
        return _convert.to_server_info(self._call(self._server.GetServerInfo, toolchain_pb2.GetServerInfoRequest()))
