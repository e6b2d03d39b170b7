"""Connection and bytes of the async client: push, fetch, and the one way in which short calls are made."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import grpc
import grpc.aio

from boardlift import _convert, _transfer
from boardlift._arguments import dataset_file
from boardlift._connected import Connected
from boardlift._external_data import find_external_files
from boardlift._model_inputs import read_input_shapes, read_outputs
from boardlift._requests import Model
from boardlift.errors import BoardliftError, InvalidInputError, UnavailableError, from_rpc_error
from boardlift.models import Artifact
from boardlift.v1 import artifact_pb2

Self = TypeVar("Self", bound="Store")


class Store(Connected):
    """A connection to a server that keeps artifacts; belongs to one event loop."""

    _library = grpc.aio

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def __aenter__(self: Self) -> Self:
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
        inputs, outputs = await asyncio.to_thread(lambda: (tuple(read_input_shapes(path)), read_outputs(path)))
        return Model(await self.push(path), tuple(external), path.name, inputs, outputs)

    async def push_data(self, data: Any) -> Artifact:
        """Store samples: the path of an `.npz`, a `datasets.Dataset`, or a mapping input name -> array [N, ...]."""
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            return await self.push(await asyncio.to_thread(dataset_file, data, Path(folder)))

    async def fetch(self, artifact: Artifact | str, target: Path | str) -> Path:
        """Download an artifact, given itself or its SHA-256, to a file and verify it."""
        sha256 = artifact if isinstance(artifact, str) else artifact.sha256
        download, retry = _transfer.Download(sha256, Path(target)), self._retry()
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
                    await asyncio.sleep(retry.pause_s(self._failure(error)))
        finally:
            download.abandon()

    async def fetch_bytes(self, sha256: str) -> bytes:
        """Download an artifact into memory and verify it."""
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            return (await self.fetch(sha256, Path(folder) / "artifact")).read_bytes()

    async def _call(
        self, method: Callable[..., Any], request: Any, timeout_s: float | None = None, done_when: str = ""
    ) -> Any:
        """Make a short call that may be repeated; see the sync twin."""
        retry = self._retry()
        while True:
            try:
                return await method(request, timeout=timeout_s or self._timeout_s, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                failure = self._failure(error)
                if retry.repeated and failure.reason == done_when:
                    return None
                await asyncio.sleep(retry.pause_s(failure))

    def _failure(self, error: grpc.aio.AioRpcError) -> BoardliftError:
        return from_rpc_error(error, self.connection.address)

    async def _send(self, upload: _transfer.Upload) -> None:
        retry, restarts = self._retry(), _transfer.RESTARTS
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
                failure = _upload_error(error, self.connection.address)
                if isinstance(failure, InvalidInputError) and failure.reason in _transfer.RESTARTABLE and restarts:
                    restarts -= 1
                    continue
                await asyncio.sleep(retry.pause_s(failure))


def _upload_error(error: grpc.aio.AioRpcError, address: str) -> BoardliftError:
    """Turn a failed upload into an exception.

    When the server ends a call while a chunk is on its way, grpc.aio may report its own failed write instead of the
    server's status. Asking the server where it stands and going on from there is right whatever the status was.
    """
    if error.code() is grpc.StatusCode.INTERNAL and error.details() == "Internal error from Core":
        return UnavailableError("The upload broke off.", reason="UPLOAD_BROKEN", remedy="Try again.")
    return from_rpc_error(error, address)
