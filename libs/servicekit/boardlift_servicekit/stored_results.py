"""The results of finished executions, one file each, named by the digest of what they are the result of."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import structlog
from boardlift.v1 import artifact_pb2
from google.protobuf.message import DecodeError, Message

from boardlift_servicekit.artifacts import ArtifactStore

_LOG = structlog.get_logger()
R = TypeVar("R", bound=Message)


class StoredResults:
    """A folder of results; the time of a file is that of its last use."""

    def __init__(self, folder: Path, store: ArtifactStore) -> None:
        """Keep results in `folder`, made when absent; the artifacts that they name lie in `store`."""
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._store = store

    def save(self, key: str, result: Message) -> None:
        """Store a result under its key.

        One that can't be written is as good as any; it is made again when it is asked for again.
        """
        partial = self._folder / f"{key}.{id(result)}.tmp"
        try:
            with partial.open("wb") as file:
                file.write(result.SerializeToString())
                file.flush()
                os.fsync(file.fileno())  # a name without its bytes would read as an empty result after a power cut
            partial.replace(self._folder / f"{key}.pb")
        except OSError:
            _LOG.exception("result_not_stored", execution=key[:12])
            partial.unlink(missing_ok=True)

    async def load(self, key: str, result_type: type[R]) -> R | None:
        """Return a stored result, marked as cached; None when there is none whose artifacts can all still be had."""
        path = self._folder / f"{key}.pb"
        result = result_type()
        try:
            result.ParseFromString(path.read_bytes())
            os.utime(path)
        except FileNotFoundError:
            return None
        except DecodeError:
            result = result_type()
        if result.execution.digest != key:  # type: ignore[attr-defined]
            _LOG.error("stored result is damaged; it is made again", execution=key[:12])
            path.unlink(missing_ok=True)
            return None
        if await self._store.missing({ref.sha256 for ref in artifacts_in(result)}):
            return None  # an artifact was cleaned up since: the run is repeated
        result.execution.cached = True  # type: ignore[attr-defined]
        return result


def sweep_results(folders: Iterable[Path], unused_since: float) -> int:
    """Remove results, and what broken writes left, that were last used before a time; returns their bytes."""
    freed = 0
    for folder in folders:
        for entry in os.scandir(folder) if folder.is_dir() else ():
            if not entry.name.endswith((".pb", ".tmp")):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
                if status.st_mtime < unused_since:
                    Path(entry.path).unlink()
                    freed += status.st_size
            except FileNotFoundError:
                continue  # another sweep was quicker
    return freed


def artifacts_in(message: Message) -> list[artifact_pb2.ArtifactRef]:
    """Return every artifact that a message names, at any depth."""
    if isinstance(message, artifact_pb2.ArtifactRef):
        return [message] if message.sha256 else []
    found: list[artifact_pb2.ArtifactRef] = []
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.GetOptions().map_entry:
            continue
        children: Sequence[Any] = [value] if isinstance(value, Message) else value
        for child in children:
            found += artifacts_in(child)
    return found


def storable(result: Message) -> bool:
    """Tell whether equal inputs would give this result again: a success, or a "no" that the user's input causes."""
    if not result.HasField("failure"):
        return True
    return bool(result.failure.user_fault)  # type: ignore[attr-defined]
