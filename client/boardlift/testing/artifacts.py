"""`ArtifactService` in memory, with resumable uploads."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from typing import Any

import grpc

from boardlift.errors import InvalidInputError, NotFoundError
from boardlift.testing.abort import abort
from boardlift.v1 import artifact_pb2 as pb
from boardlift.v1 import artifact_pb2_grpc

CHUNK_BYTES = 256 * 1024


class ArtifactServicer(artifact_pb2_grpc.ArtifactServiceServicer):
    """Keeps artifacts in dicts."""

    def __init__(self) -> None:
        """Start empty."""
        self.stored: dict[str, tuple[bytes, str]] = {}
        self.partial: dict[str, bytes] = {}
        self.uploads = 0
        self._lock = threading.Lock()

    def put(self, data: bytes, media_type: str = "application/octet-stream") -> pb.ArtifactRef:
        """Store bytes."""
        sha256 = hashlib.sha256(data).hexdigest()
        self.stored[sha256] = (data, media_type)
        return pb.ArtifactRef(sha256=sha256, size_bytes=len(data), media_type=media_type)

    def UploadArtifact(self, requests: Iterator[pb.UploadArtifactRequest], context: grpc.ServicerContext) -> Any:
        """Store one artifact; a broken stream leaves what came."""
        header = next(requests).header
        sha256 = header.artifact.sha256
        if sha256 in self.stored:
            return pb.UploadArtifactResponse(artifact=header.artifact, already_stored=True)
        with self._lock:
            self.uploads += 1
            kept = self.partial.get(sha256, b"")
        if header.write_offset != len(kept):
            abort(context, InvalidInputError("Wrong offset.", reason="OFFSET_INVALID"))
        try:
            for request in requests:
                kept += request.chunk
                self.partial[sha256] = kept
        except grpc.RpcError:
            abort(context, InvalidInputError("The upload broke off.", reason="SIZE_MISMATCH"))
        self.partial.pop(sha256, None)
        if len(kept) != header.artifact.size_bytes or hashlib.sha256(kept).hexdigest() != sha256:
            abort(context, InvalidInputError("The bytes have another digest.", reason="DIGEST_MISMATCH"))
        return pb.UploadArtifactResponse(artifact=self.put(kept, header.artifact.media_type))

    def GetUploadStatus(self, request: pb.GetUploadStatusRequest, context: grpc.ServicerContext) -> Any:
        """Say how much is kept."""
        complete = request.sha256 in self.stored
        kept = len(self.stored[request.sha256][0]) if complete else len(self.partial.get(request.sha256, b""))
        return pb.GetUploadStatusResponse(committed_size_bytes=kept, complete=complete)

    def DownloadArtifact(self, request: pb.DownloadArtifactRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        """Send an artifact."""
        if request.sha256 not in self.stored:
            abort(context, NotFoundError("There is no such artifact.", reason="ARTIFACT_MISSING"))
        data, media_type = self.stored[request.sha256]
        ref = pb.ArtifactRef(sha256=request.sha256, size_bytes=len(data), media_type=media_type)
        yield pb.DownloadArtifactResponse(artifact=ref)
        for start in range(request.read_offset, len(data), CHUNK_BYTES):
            yield pb.DownloadArtifactResponse(chunk=data[start : start + CHUNK_BYTES])

    def FindMissingArtifacts(self, request: pb.FindMissingArtifactsRequest, context: grpc.ServicerContext) -> Any:
        """Name what is not stored."""
        return pb.FindMissingArtifactsResponse(missing_sha256=[d for d in request.sha256 if d not in self.stored])
