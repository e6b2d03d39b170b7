"""Connection and bytes of the sync client: push, fetch, and the one way in which short calls are made."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

import grpc

from boardlift import _convert, _transfer
from boardlift._arguments import dataset_file
from boardlift._connected import Connected
from boardlift._external_data import find_external_files
from boardlift._model_inputs import read_input_shapes, read_outputs
from boardlift._requests import Model
from boardlift._threaded import close_after
from boardlift.errors import BoardliftError, InvalidInputError, from_rpc_error
from boardlift.models import Artifact
from boardlift.v1 import artifact_pb2

Self = TypeVar("Self", bound="Store")


class Store(Connected):
    """A connection to a server that keeps artifacts; safe to share between threads, not between processes."""

    _library = grpc

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        close_after(kind, self.close)

    def push(self, path: Path | str, name: str = "") -> Artifact:
        """Store a file on the server; instant when it is known there, and goes on where an earlier try broke.

        Raises:
            InvalidInputError: The file can't be read.
            BoardliftError: The server refused it.
        """
        upload = _transfer.prepare_upload(Path(path))
        digests = artifact_pb2.FindMissingArtifactsRequest(sha256=[upload.artifact.sha256])
        if self._call(self._artifacts.FindMissingArtifacts, digests).missing_sha256:
            self._send(upload)
        return _convert.to_artifact(upload.artifact, name or Path(path).name)

    def push_model(self, path: Path | str) -> Model:
        """Store a model with the weight files it keeps outside itself.

        Raises:
            InvalidInputError: It is not an ONNX file, or a weight file is missing.
        """
        path = Path(path)
        external = [self.push(file, name) for name, file in find_external_files(path).items()]
        return Model(self.push(path), tuple(external), path.name, tuple(read_input_shapes(path)), read_outputs(path))

    def push_data(self, data: Any) -> Artifact:
        """Store samples: the path of an `.npz`, a `datasets.Dataset`, or a mapping input name -> array [N, ...].

        Raises:
            InvalidInputError: They are not usable as samples.
        """
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            return self.push(dataset_file(data, Path(folder)))

    def fetch(self, artifact: Artifact | str, target: Path | str) -> Path:
        """Download an artifact, given itself or its SHA-256, to a file and verify it.

        Raises:
            BoardliftError: It is unknown, or the bytes don't match.
        """
        sha256 = artifact if isinstance(artifact, str) else artifact.sha256
        download, retry = _transfer.Download(sha256, Path(target)), self._retry()
        timeout_s = _transfer.transfer_timeout_s(getattr(artifact, "size_bytes", 0) or (1 << 30))
        try:
            while True:
                try:
                    for answer in self._artifacts.DownloadArtifact(
                        download.request(), timeout=timeout_s, metadata=self._metadata
                    ):
                        download.receive(answer)
                        retry.succeeded()
                    return download.finish()
                except grpc.RpcError as error:
                    time.sleep(retry.pause_s(self._failure(error)))
        finally:
            download.abandon()

    def fetch_bytes(self, sha256: str) -> bytes:
        """Download an artifact into memory and verify it."""
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            return self.fetch(sha256, Path(folder) / "artifact").read_bytes()

    def _call(
        self, method: Callable[..., Any], request: Any, timeout_s: float | None = None, done_when: str = ""
    ) -> Any:
        """Make a short call that may be repeated: reads, and writes whose request names its effect.

        Args:
            method: Of a stub.
            request: Its request.
            timeout_s: Longest time of one try; default that of the client.
            done_when: Reason by which a repetition says that an earlier try, whose answer was lost, has had its effect.
        """
        retry = self._retry()
        while True:
            try:
                return method(request, timeout=timeout_s or self._timeout_s, metadata=self._metadata)
            except grpc.RpcError as error:
                failure = self._failure(error)
                if retry.repeated and failure.reason == done_when:
                    return None
                time.sleep(retry.pause_s(failure))

    def _failure(self, error: grpc.RpcError) -> BoardliftError:
        return convert_error(error, self.connection.address)

    def _send(self, upload: _transfer.Upload) -> None:
        retry, restarts = self._retry(), _transfer.RESTARTS
        timeout_s = _transfer.transfer_timeout_s(upload.artifact.size_bytes)
        status = artifact_pb2.GetUploadStatusRequest(sha256=upload.artifact.sha256)
        while True:
            kept = self._call(self._artifacts.GetUploadStatus, status)
            if kept.complete:
                return
            try:
                messages = _transfer.upload_messages(upload, kept.committed_size_bytes)
                self._artifacts.UploadArtifact(messages, timeout=timeout_s, metadata=self._metadata)
                return
            except grpc.RpcError as error:
                failure = self._failure(error)
                if isinstance(failure, InvalidInputError) and failure.reason in _transfer.RESTARTABLE and restarts:
                    restarts -= 1
                    continue
                time.sleep(retry.pause_s(failure))


def convert_error(error: grpc.RpcError, address: str = "") -> BoardliftError:
    """Turn a failed sync call of somebody at an address into the exception that its status means."""
    return from_rpc_error(cast(grpc.Call, error), address)
