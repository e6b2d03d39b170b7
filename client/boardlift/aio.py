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
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
import grpc.aio

from boardlift import _convert, _requests, _transfer
from boardlift._aio_job import ArtifactFile, Job
from boardlift._arguments import JOB_PAGE, check_state, dataset_file
from boardlift._deadline import Deadline
from boardlift._external_data import find_external_files
from boardlift._requests import Model, RunOptions
from boardlift._retry import Retry
from boardlift._watch import Watch
from boardlift.connection import Connection
from boardlift.errors import InvalidInputError, from_rpc_error
from boardlift.models import Artifact, Board, Gate, JobEvent, JobInfo, ServerInfo, Variant
from boardlift.v1 import artifact_pb2, artifact_pb2_grpc, job_pb2, job_pb2_grpc, toolchain_pb2, toolchain_pb2_grpc

__all__ = ["ArtifactFile", "Client", "Job"]


class Client:
    """A connection to the orchestrator; belongs to one event loop. Arguments and errors as in `boardlift.Client`."""

    def __init__(
        self,
        server: str | Connection | None = None,
        *,
        token: str | None = None,
        ca: Path | str | None = None,
        cert: Path | str | None = None,
        key: Path | str | None = None,
        timeout_s: float = 20.0,
        patience_s: float = 20.0,
    ) -> None:
        """Connect lazily; see `boardlift.Client`."""
        if not isinstance(server, Connection):
            server = Connection.from_environment(server, token=token, ca=ca, cert=cert, key=key)
        self.connection = server
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._metadata = server.metadata()
        self._channel = server.open(grpc.aio)
        self._jobs = job_pb2_grpc.JobServiceStub(self._channel)
        self._boards = job_pb2_grpc.BoardServiceStub(self._channel)
        self._artifacts = artifact_pb2_grpc.ArtifactServiceStub(self._channel)
        self._server = toolchain_pb2_grpc.ServerServiceStub(self._channel)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def push(self, path: Path | str, name: str = "") -> Artifact:
        """Store a file on the server; instant when it is known there, and goes on where an earlier try broke."""
        upload = await asyncio.to_thread(_transfer.prepare_upload, Path(path))
        digests = artifact_pb2.FindMissingArtifactsRequest(sha256=[upload.artifact.sha256])
        if (await self._call(self._artifacts.FindMissingArtifacts, digests)).missing_sha256:
            await self._send(upload)
        return _convert.to_artifact(upload.artifact, name or Path(path).name)

    async def push_model(self, path: Path | str) -> Model:
        """Store a model with the weight files it keeps outside itself."""
        path = Path(path)
        files = await asyncio.to_thread(find_external_files, path)
        external = [await self.push(file, name) for name, file in files.items()]
        return Model(await self.push(path), tuple(external), path.name)

    async def push_data(self, data: Any) -> Artifact:
        """Store samples: the path of an `.npz`, a `datasets.Dataset`, or a mapping input name -> array [N, ...]."""
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            return await self.push(await asyncio.to_thread(dataset_file, data, Path(folder)))

    async def fetch(self, artifact: Artifact | str, target: Path | str) -> Path:
        """Download an artifact, given itself or its SHA-256, to a file and verify it."""
        sha256 = artifact if isinstance(artifact, str) else artifact.sha256
        download, retry = _transfer.Download(sha256, Path(target)), Retry(self._patience_s)
        timeout_s = _transfer.transfer_timeout_s(getattr(artifact, "size_bytes", 0) or (1 << 30))
        try:
            while True:
                try:
                    request = download.request()
                    async for answer in self._artifacts.DownloadArtifact(
                        request, timeout=timeout_s, metadata=self._metadata
                    ):
                        download.receive(answer)
                        retry.succeeded()
                    return download.finish()
                except grpc.aio.AioRpcError as error:
                    await asyncio.sleep(retry.pause_s(from_rpc_error(error)))
        finally:
            download.abandon()

    async def fetch_bytes(self, sha256: str) -> bytes:
        """Download an artifact into memory and verify it."""
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            return (await self.fetch(sha256, Path(folder) / "artifact")).read_bytes()

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
        watch, deadline = Watch(job_id, after_sequence, Retry(self._patience_s)), Deadline(timeout)
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
                await asyncio.sleep(watch.pause_s(from_rpc_error(error)))
            finally:
                call.cancel()

    async def cancel_job(self, job_id: str) -> JobInfo:
        """Ask a job to stop."""
        answer = await self._call(self._jobs.CancelJob, job_pb2.CancelJobRequest(job_id=job_id))
        return _convert.to_job(answer.job)

    async def boards(self, labels: Mapping[str, str] | None = None) -> list[Board]:
        """Return the registered boards by id."""
        request, boards = job_pb2.ListBoardsRequest(page_size=1000, labels=labels or {}), []
        while True:
            answer = await self._call(self._boards.ListBoards, request)
            boards += [_convert.to_board(board) for board in answer.boards]
            if not answer.next_page_token:
                return boards
            request.page_token = answer.next_page_token

    async def devices(self, labels: Mapping[str, str] | None = None) -> list[Board]:
        """Alias of `boards`."""
        return await self.boards(labels)

    async def server_info(self) -> ServerInfo:
        """Return what the server says about itself."""
        answer = await self._call(self._server.GetServerInfo, toolchain_pb2.GetServerInfoRequest())
        return _convert.to_server_info(answer)

    async def _call(self, method: Callable[..., Any], request: Any) -> Any:
        """Make a short call that may be repeated: reads, and writes whose request names its effect."""
        retry = Retry(self._patience_s)
        while True:
            try:
                return await method(request, timeout=self._timeout_s, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                await asyncio.sleep(retry.pause_s(from_rpc_error(error)))

    async def _send(self, upload: _transfer.Upload) -> None:
        retry, restarts = Retry(self._patience_s), _transfer.RESTARTS
        timeout_s = _transfer.transfer_timeout_s(upload.artifact.size_bytes)
        status = artifact_pb2.GetUploadStatusRequest(sha256=upload.artifact.sha256)
        while True:
            kept = await self._call(self._artifacts.GetUploadStatus, status)
            if kept.complete:
                return
            try:
                messages = _transfer.upload_messages(upload, kept.committed_size_bytes)
                await self._artifacts.UploadArtifact(messages, timeout=timeout_s, metadata=self._metadata)
                return
            except grpc.aio.AioRpcError as error:
                failure = from_rpc_error(error)
                if isinstance(failure, InvalidInputError) and failure.reason in _transfer.RESTARTABLE and restarts:
                    restarts -= 1
                    continue
                await asyncio.sleep(retry.pause_s(failure))
