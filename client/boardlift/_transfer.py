"""Move bytes by digest: hash, chunk, go on where it broke, verify. Sans-IO: no gRPC calls here, only their messages."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from boardlift._local_files import unreadable
from boardlift.errors import DataLossError
from boardlift.v1 import artifact_pb2 as pb

CHUNK_BYTES = 256 * 1024
"""Larger chunks gain nothing once both ends hash."""

RESTARTABLE = ("OFFSET_INVALID", "DIGEST_MISMATCH", "SIZE_MISMATCH")
"""Refusals after which asking the server where it stands and sending again may help: another upload of the same bytes
came between, or what was kept is damaged."""
RESTARTS = 2

MEDIA_TYPES = {
    ".onnx": "application/onnx",
    ".npz": "application/x-npz",
    ".json": "application/json",
    ".html": "text/html",
    ".xml": "application/xml",
}


@dataclass(frozen=True)
class Upload:
    """A file ready to be sent."""

    path: Path
    """The file."""
    artifact: pb.ArtifactRef
    """Its digest, size and media type."""


def prepare_upload(path: Path) -> Upload:
    """Hash a file.

    Raises:
        InvalidInputError: It can't be read (`FILE_UNREADABLE`).
    """
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise unreadable(path, error, reason="FILE_UNREADABLE", remedy="Name an existing file.") from error
    media_type = MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream")
    return Upload(path, pb.ArtifactRef(sha256=digest.hexdigest(), size_bytes=size, media_type=media_type))


def upload_messages(upload: Upload, offset: int) -> Iterator[pb.UploadArtifactRequest]:
    """Yield header and chunks from an offset on."""
    header = pb.UploadHeader(artifact=upload.artifact, write_offset=offset)
    yield pb.UploadArtifactRequest(header=header)
    with upload.path.open("rb") as file:
        file.seek(offset)
        while chunk := file.read(CHUNK_BYTES):
            yield pb.UploadArtifactRequest(chunk=chunk)


def transfer_timeout_s(size_bytes: int) -> float:
    """Return a deadline for moving so many bytes: a minute, and a second per half MiB."""
    return 60.0 + size_bytes / (512 * 1024)


class Download:
    """A file on its way in: keeps what came, verifies the digest, appears under its name only when complete."""

    def __init__(self, sha256: str, target: Path) -> None:
        """Write next to `target`, whose folder is made.

        Raises:
            OSError: Nothing can be written there.
        """
        self.sha256 = sha256
        self._target = target
        self._digest = hashlib.sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        self._partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            self._file: IO[bytes] = self._partial.open("xb")
        except OSError as error:  # by the name that the caller knows
            raise OSError(error.errno, error.strerror, str(target)) from error
        self.size_bytes = 0

    def request(self) -> pb.DownloadArtifactRequest:
        """Return the request for what is still missing."""
        return pb.DownloadArtifactRequest(sha256=self.sha256, read_offset=self.size_bytes)

    def receive(self, answer: pb.DownloadArtifactResponse) -> None:
        """Take the next bytes."""
        self._digest.update(answer.chunk)
        self._file.write(answer.chunk)
        self.size_bytes += len(answer.chunk)

    def finish(self) -> Path:
        """Verify and put the file in place.

        Raises:
            DataLossError: The bytes are not those asked for (`DIGEST_MISMATCH`).
        """
        self._file.close()
        if self._digest.hexdigest() != self.sha256:
            self.abandon()
            raise DataLossError(
                f"What came for {self._target.name} does not have its digest.",
                reason="DIGEST_MISMATCH",
                remedy="Try again; if it repeats, the server's store is damaged.",
                metadata={"sha256": self.sha256},
            )
        self._partial.replace(self._target)
        return self._target

    def abandon(self) -> None:
        """Remove what came; harmless after `finish`."""
        self._file.close()
        self._partial.unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """Return a name from the server as a plain file name: never a folder, never hidden, never empty."""
    kept = "".join(c if c.isalnum() or c in "._-+" else "_" for c in name.replace("\\", "/").rpartition("/")[2])
    return kept.lstrip(".") or "artifact"
