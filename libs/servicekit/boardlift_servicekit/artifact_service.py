"""`ArtifactService` over a local store: streaming, resumable, hashed on arrival."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO

from boardlift.errors import ExhaustedError, InvalidInputError
from boardlift.v1 import artifact_pb2 as pb
from boardlift.v1 import artifact_pb2_grpc

from boardlift_servicekit.artifacts import (
    CHUNK_BYTES,
    LocalStore,
    check_sha256,
    check_size,
    file_sha256,
    missing_error,
)
from boardlift_servicekit.full_disk import named_full_disk

SERVICE = "boardlift.v1.ArtifactService"
_MAX_CHUNK_BYTES = 1 << 20
_MAX_DIGESTS = 1000


class ArtifactServicer(artifact_pb2_grpc.ArtifactServiceServicer):
    """Serves a `LocalStore`."""

    def __init__(self, store: LocalStore) -> None:
        """Serve `store`."""
        self._store = store

    async def UploadArtifact(self, requests: AsyncIterator[pb.UploadArtifactRequest], context: Any) -> Any:
        """Store one artifact; a stream that breaks keeps its bytes for the next try."""
        first = await anext(requests, None)
        if first is None or first.WhichOneof("part") != "header":
            raise InvalidInputError(
                "The first message must be the header.",
                reason="HEADER_MISSING",
                remedy="Send UploadHeader first, then chunks.",
            )
        artifact = first.header.artifact
        check_sha256(artifact.sha256)
        check_size(artifact.size_bytes, self._store.max_artifact_bytes)
        if self._store.touch(artifact.sha256):
            return pb.UploadArtifactResponse(artifact=artifact, already_stored=True)
        with named_full_disk():
            own = self._take_partial(first.header)
        try:
            await self._receive(own, first.header, requests)
            await self._complete(own, artifact)
        except ExhaustedError:
            own.unlink(missing_ok=True)  # what can't be completed must not keep the disk full
            raise
        finally:
            with contextlib.suppress(FileNotFoundError):  # else the stream broke: the next try may go on from here
                own.replace(self._store.partial_path(artifact.sha256))
        return pb.UploadArtifactResponse(artifact=artifact)

    async def GetUploadStatus(self, request: pb.GetUploadStatusRequest, context: Any) -> Any:
        """Report how much of an upload is kept."""
        if self._store.touch(request.sha256):
            size = self._store.path(request.sha256).stat().st_size
            return pb.GetUploadStatusResponse(committed_size_bytes=size, complete=True)
        partial = self._store.partial_path(request.sha256)
        size = partial.stat().st_size if partial.exists() else 0
        return pb.GetUploadStatusResponse(committed_size_bytes=size)

    async def DownloadArtifact(self, request: pb.DownloadArtifactRequest, context: Any) -> Any:
        """Send the bytes from an offset on."""
        with self._open(request.sha256) as file:  # open before anything is awaited: a sweep may take the name meanwhile
            size = os.fstat(file.fileno()).st_size
            if not 0 <= request.read_offset <= size:
                raise InvalidInputError(
                    f"The offset must lie between 0 and {size}.",
                    reason="OFFSET_INVALID",
                    remedy="Ask for the size first, or read from 0.",
                    metadata={"field": "read_offset"},
                )
            yield pb.DownloadArtifactResponse(artifact=pb.ArtifactRef(sha256=request.sha256, size_bytes=size))
            file.seek(request.read_offset)
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield pb.DownloadArtifactResponse(chunk=chunk)

    async def FindMissingArtifacts(self, request: pb.FindMissingArtifactsRequest, context: Any) -> Any:
        """Tell which of the asked digests are not stored."""
        if len(request.sha256) > _MAX_DIGESTS:
            raise InvalidInputError(
                f"At most {_MAX_DIGESTS} digests per call.",
                reason="TOO_MANY_DIGESTS",
                remedy="Ask in several calls.",
                metadata={"field": "sha256"},
            )
        return pb.FindMissingArtifactsResponse(missing_sha256=await self._store.missing(request.sha256))

    def _open(self, sha256: str) -> BinaryIO:
        try:
            return self._store.path(sha256).open("rb")
        except FileNotFoundError as error:
            raise missing_error(sha256) from error

    def _take_partial(self, header: pb.UploadHeader) -> Path:
        """Return a file of this call alone, holding what an earlier one left when the header goes on from there.

        Two callers may send the same bytes at once, also through two servers that share the folder: a rename lets
        exactly one of them take what was kept.
        """
        partial = self._store.partial_path(header.artifact.sha256)
        own = partial.with_name(f"{header.artifact.sha256}.{secrets.token_hex(8)}.taken")
        kept = 0
        if header.write_offset:
            with contextlib.suppress(FileNotFoundError):
                partial.replace(own)
                kept = own.stat().st_size
        if header.write_offset != kept:
            if own.exists():
                own.replace(partial)
            raise InvalidInputError(
                f"{kept} bytes are kept; go on from there.",
                reason="OFFSET_INVALID",
                remedy="Ask GetUploadStatus first.",
                metadata={"field": "write_offset", "committed_size_bytes": str(kept)},
            )
        own.touch()
        return own

    async def _receive(
        self, own: Path, header: pb.UploadHeader, requests: AsyncIterator[pb.UploadArtifactRequest]
    ) -> None:
        size = header.write_offset
        with named_full_disk(), own.open("ab") as file:
            async for request in requests:
                if request.WhichOneof("part") != "chunk" or len(request.chunk) > _MAX_CHUNK_BYTES:
                    raise InvalidInputError(
                        "After the header come chunks of at most 1 MiB.",
                        reason="CHUNK_INVALID",
                        remedy="Send the bytes in chunks of 1 MiB or less.",
                    )
                size += len(request.chunk)
                if size > header.artifact.size_bytes:
                    raise InvalidInputError(
                        "More bytes came than the header says.",
                        reason="SIZE_MISMATCH",
                        remedy="Upload the file again, with the size it has now.",
                    )
                file.write(request.chunk)
        if size != header.artifact.size_bytes:
            raise InvalidInputError(
                f"The header says {header.artifact.size_bytes} bytes, {size} came.",
                reason="SIZE_MISMATCH",
                remedy="Upload the file again, with the size it has now.",
            )

    async def _complete(self, own: Path, artifact: pb.ArtifactRef) -> None:
        if await asyncio.to_thread(file_sha256, own) != artifact.sha256:
            own.unlink()
            raise InvalidInputError(
                "The bytes have another digest than the header says.",
                reason="DIGEST_MISMATCH",
                remedy="Upload the file again, with the digest it has now.",
            )
        await asyncio.to_thread(self._store.adopt, own, artifact.sha256)  # waits for the disk
