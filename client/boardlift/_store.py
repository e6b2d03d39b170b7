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
from boardlift._external_data import find_external_files
from boardlift._requests import Model
from boardlift._retry import Retry
from boardlift.connection import Connection
from boardlift.errors import BoardliftError, InvalidInputError, from_rpc_error
from boardlift.models import Artifact
from boardlift.v1 import artifact_pb2, artifact_pb2_grpc

Self = TypeVar("Self", bound="Store")


class Store:
    """A connection to a server that keeps artifacts; safe to share between threads, not between processes."""

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
        """Connect lazily.

        Args:
            server: `host:port`, `https://host:port`, or a `Connection`; default BOARDLIFT_SERVER, else 127.0.0.1:7400.
            token: Bearer token; default BOARDLIFT_TOKEN.
            ca: CA certificate in PEM; default BOARDLIFT_CA, else the system's.
            cert: Own certificate in PEM; default BOARDLIFT_CERT.
            key: Key of the own certificate in PEM; default BOARDLIFT_KEY.
            timeout_s: Deadline of one short call.
            patience_s: How long calls are repeated while the server is away.

        Raises:
            InvalidInputError: A certificate can't be read, or a token would travel unencrypted.
        """
        if not isinstance(server, Connection):
            server = Connection.from_environment(server, token=token, ca=ca, cert=cert, key=key)
        self.connection = server
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self.on_wait: Callable[[], None] | None = None
        """Told once per call that the server is away and the call is being repeated."""
        self._metadata = server.metadata()
        self._channel = server.open(grpc)
        self._artifacts = artifact_pb2_grpc.ArtifactServiceStub(self._channel)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        return Model(self.push(path), tuple(external), path.name)

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

    def _retry(self) -> Retry:
        return Retry(self._patience_s, on_wait=self.on_wait)

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
