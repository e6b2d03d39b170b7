"""Content-addressed bytes: a local store, and a remote one behind a local cache.

Layout of a local store: `objects/ab/cdef...` (complete, read-only; its time is that of its last use, see
`sweep_store.py`), `uploads/<sha256>.part` (interrupted uploads), `locks`. A name is taken from the wire only after it
has been checked to be 64 hexadecimal digits, so it can never be a path.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import IO, Any, Protocol

import grpc
from boardlift.errors import (
    DataLossError,
    InternalError,
    InvalidInputError,
    PreconditionError,
    from_rpc_error,
)
from boardlift.v1 import artifact_pb2 as pb
from boardlift.v1 import artifact_pb2_grpc

from boardlift_servicekit.full_disk import named_full_disk
from boardlift_servicekit.object_locks import ObjectLocks

CHUNK_BYTES = 256 * 1024
"""Larger chunks gain nothing once hashing is on (measured)."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_sha256(text: str) -> str:
    """Return `text` when it is a lower-case SHA-256.

    Raises:
        InvalidInputError: DIGEST_INVALID.
    """
    if not _SHA256.fullmatch(text):
        raise InvalidInputError(
            "A digest must be 64 lower-case hexadecimal digits.",
            reason="DIGEST_INVALID",
            remedy="Give the SHA-256 as `sha256sum` prints it.",
            metadata={"field": "sha256"},
        )
    return text


class ArtifactStore(Protocol):
    """Where a service gets its inputs and leaves its outputs."""

    async def fetch(self, artifact: pb.ArtifactRef) -> Path:
        """Return a local, read-only file with the bytes."""
        ...

    async def put_file(self, path: Path, media_type: str) -> pb.ArtifactRef:
        """Store a file."""
        ...

    async def put_bytes(self, data: bytes, media_type: str) -> pb.ArtifactRef:
        """Store bytes."""
        ...

    async def missing(self, digests: Iterable[str]) -> list[str]:
        """Return those digests that can't be fetched."""
        ...


class LocalStore:
    """A store in a directory."""

    def __init__(self, root: Path, max_artifact_bytes: int = 4 << 30) -> None:
        """Use `root`, made when absent; larger artifacts than the limit are refused."""
        self.root = root
        self.objects = root / "objects"
        self.uploads = root / "uploads"
        self.locks = ObjectLocks(root / "locks")
        self.max_artifact_bytes = max_artifact_bytes
        self.objects.mkdir(parents=True, exist_ok=True)
        self.uploads.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Where the complete bytes of a digest lie or would lie."""
        check_sha256(sha256)
        return self.objects / sha256[:2] / sha256[2:]

    def partial_path(self, sha256: str) -> Path:
        """Where an interrupted upload of a digest is kept."""
        return self.uploads / f"{check_sha256(sha256)}.part"

    def has(self, sha256: str) -> bool:
        """Tell whether the bytes are complete here."""
        return self.path(sha256).is_file()

    def touch(self, sha256: str) -> bool:
        """Tell whether the bytes are complete here, and keep them from being swept for a while if they are."""
        path = self.path(sha256)
        with self.locks.shared(sha256):
            try:
                os.utime(path)
            except FileNotFoundError:
                return False
        return True

    async def missing(self, digests: Iterable[str]) -> list[str]:
        """Return those digests that are not complete here; the others are in use from now on."""
        wanted = list(digests)
        return await asyncio.to_thread(lambda: [digest for digest in wanted if not self.touch(digest)])

    async def fetch(self, artifact: pb.ArtifactRef) -> Path:
        """Return the file.

        Raises:
            PreconditionError: ARTIFACT_MISSING.
        """
        if not self.touch(artifact.sha256):
            raise missing_error(artifact.sha256)
        return self.path(artifact.sha256)

    async def put_bytes(self, data: bytes, media_type: str) -> pb.ArtifactRef:
        """Store bytes; known ones cost only the hash."""
        return await asyncio.to_thread(self._put, [data], media_type)

    async def put_file(self, path: Path, media_type: str) -> pb.ArtifactRef:
        """Store a copy of a file; it may be changed or removed afterwards."""

        def read() -> pb.ArtifactRef:
            with path.open("rb") as file:
                return self._put(iter(lambda: file.read(1 << 20), b""), media_type)

        return await asyncio.to_thread(read)

    def adopt(self, partial: Path, sha256: str) -> None:
        """Move a complete, verified file into place; both ends of a race leave the same bytes.

        The bytes are on disk before they have their name: job records are, too, and must not name lost bytes.
        """
        target = self.path(sha256)
        with named_full_disk():
            target.parent.mkdir(exist_ok=True)
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            partial.chmod(0o444)
            with self.locks.shared(sha256):
                os.utime(partial)
                partial.replace(target)

    def _put(self, chunks: Iterable[bytes], media_type: str) -> pb.ArtifactRef:
        digest, size = hashlib.sha256(), 0
        with named_full_disk():
            handle, name = tempfile.mkstemp(dir=self.uploads, prefix="put-")
        partial = Path(name)
        try:
            with named_full_disk(), os.fdopen(handle, "wb") as file:
                for chunk in chunks:
                    size += len(chunk)
                    check_size(size, self.max_artifact_bytes)
                    digest.update(chunk)
                    file.write(chunk)
            if not self.touch(digest.hexdigest()):
                self.adopt(partial, digest.hexdigest())
        finally:
            partial.unlink(missing_ok=True)
        return pb.ArtifactRef(sha256=digest.hexdigest(), size_bytes=size, media_type=media_type)


class RemoteStore:
    """Another server's artifacts behind a local cache: what was fetched or stored once is served from here."""

    def __init__(self, channel: Any, cache: LocalStore) -> None:
        """Reach `ArtifactService` over `channel`; keep copies in `cache`."""
        self._stub = artifact_pb2_grpc.ArtifactServiceStub(channel)
        self._cache = cache

    async def missing(self, digests: Iterable[str]) -> list[str]:
        """Return those digests that are not on the other server."""
        wanted = [check_sha256(digest) for digest in digests]
        found: list[str] = []
        for start in range(0, len(wanted), 1000):
            request = pb.FindMissingArtifactsRequest(sha256=wanted[start : start + 1000])
            try:
                found += (await self._stub.FindMissingArtifacts(request, timeout=10)).missing_sha256
            except grpc.aio.AioRpcError as error:
                raise from_rpc_error(error) from error
        return found

    async def fetch(self, artifact: pb.ArtifactRef) -> Path:
        """Return the cached file, downloading it first when needed; a broken download goes on where it was.

        Raises:
            DataLossError: DIGEST_MISMATCH when the bytes that came are not those asked for.
        """
        if self._cache.touch(artifact.sha256):
            return self._cache.path(artifact.sha256)
        with named_full_disk():
            handle, name = tempfile.mkstemp(dir=self._cache.partial_path(artifact.sha256).parent, prefix="get-")
        partial = Path(name)
        try:
            with named_full_disk(), os.fdopen(handle, "wb") as file:
                await _repeat(lambda: self._download(artifact.sha256, file))
            if await asyncio.to_thread(file_sha256, partial) != artifact.sha256:
                raise DataLossError(
                    "The bytes that came have another digest.",
                    reason="DIGEST_MISMATCH",
                    remedy="Do it again; if it repeats, the store at the other side is damaged.",
                )
            await asyncio.to_thread(self._cache.adopt, partial, artifact.sha256)
        finally:
            partial.unlink(missing_ok=True)
        return self._cache.path(artifact.sha256)

    async def _download(self, sha256: str, file: IO[bytes]) -> None:
        request = pb.DownloadArtifactRequest(sha256=sha256, read_offset=file.tell())
        async for answer in self._stub.DownloadArtifact(request, timeout=3600):
            check_size(file.tell() + len(answer.chunk), self._cache.max_artifact_bytes)
            file.write(answer.chunk)

    async def put_bytes(self, data: bytes, media_type: str) -> pb.ArtifactRef:
        """Store bytes here and on the other server."""
        return await self._push(await self._cache.put_bytes(data, media_type))

    async def put_file(self, path: Path, media_type: str) -> pb.ArtifactRef:
        """Store a file here and on the other server."""
        return await self._push(await self._cache.put_file(path, media_type))

    async def _push(self, artifact: pb.ArtifactRef) -> pb.ArtifactRef:
        if await self.missing([artifact.sha256]):
            await _repeat(lambda: self._upload(artifact))
        return artifact

    async def _upload(self, artifact: pb.ArtifactRef) -> None:
        kept = await self._stub.GetUploadStatus(pb.GetUploadStatusRequest(sha256=artifact.sha256), timeout=10)
        if not kept.complete:
            parts = upload_parts(self._cache.path(artifact.sha256), artifact, kept.committed_size_bytes)
            await self._stub.UploadArtifact(parts, timeout=3600)


async def _repeat(transfer: Callable[[], Awaitable[None]]) -> None:
    """Try a transfer again while the server is away, restarts, or another upload of the same bytes came between.

    grpc.aio reports INTERNAL instead of the server's answer when the server ends an upload early, so that counts too.
    """
    for pause_s in (0.2, 0.5, 1.0, 2.0, 5.0, None):
        try:
            await transfer()
            return
        except grpc.aio.AioRpcError as error:
            failure = from_rpc_error(error)
            again = failure.retryable or isinstance(failure, InternalError) or failure.reason == "OFFSET_INVALID"
            if pause_s is None or not again:
                raise failure from error
            await asyncio.sleep(pause_s)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


async def upload_parts(
    path: Path, artifact: pb.ArtifactRef, offset: int = 0
) -> AsyncIterator[pb.UploadArtifactRequest]:
    """Yield the messages that upload a file from an offset."""
    yield pb.UploadArtifactRequest(header=pb.UploadHeader(artifact=artifact, write_offset=offset))
    with path.open("rb") as file:
        file.seek(offset)
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield pb.UploadArtifactRequest(chunk=chunk)


def missing_error(sha256: str) -> PreconditionError:
    """The error for bytes that are not stored."""
    return PreconditionError(
        f"Artifact {sha256[:12]} is not stored here.",
        reason="ARTIFACT_MISSING",
        remedy="Check the digest; if it is right, upload the file (again).",
        metadata={"sha256": sha256},
    )


def check_size(size: int, limit: int) -> None:
    """Refuse more bytes than the limit."""
    if size > limit:
        raise InvalidInputError(
            f"The artifact is larger than {limit} bytes.",
            reason="ARTIFACT_TOO_LARGE",
            remedy="Send less (fewer samples), or let the operator raise BOARDLIFT_MAX_ARTIFACT_BYTES.",
            metadata={"limit_bytes": str(limit)},
        )
