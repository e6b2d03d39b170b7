"""Remember what was measured, by digest, so that an interrupted exploration goes on where it stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from boardlift_compiler.keep_text import keep_text

MOST_VALUES = 8192
"""Values kept; the longest unused go first. One takes 1 to 50 kB."""


def digest_of(*parts: str | bytes) -> str:
    """Return one digest over parts, each kept apart from the next."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class Memory:
    """JSON values in a folder, by digest. Losing them costs time, never correctness."""

    def __init__(self, folder: Path, version: str = "", most: int = MOST_VALUES) -> None:
        """Use `folder`, made when absent.

        Args:
            folder: Where the values lie.
            version: Of the code and the tool that measure; what another version kept is not found.
            most: Values kept.
        """
        self._folder, self._version, self._most = folder, version, most
        folder.mkdir(parents=True, exist_ok=True)
        self._count = sum(1 for _ in folder.glob("*.json"))

    def recall(self, key: str) -> Any | None:
        """Return what is kept under a digest; None when there is nothing or it is damaged."""
        path = self._path(key)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            os.utime(path)
            return value
        except FileNotFoundError:
            return None
        except (ValueError, OSError):
            path.unlink(missing_ok=True)  # damaged: it is made again
            return None

    def keep(self, key: str, value: Any) -> None:
        """Keep a value under a digest; where it can't be written, it is measured again."""
        path = self._path(key)
        known = path.exists()
        self._count += keep_text(path, json.dumps(value)) and not known
        if self._count > self._most:
            self._forget()

    def _path(self, key: str) -> Path:
        return self._folder / f"{digest_of(self._version, key) if self._version else key}.json"

    def _forget(self) -> None:
        """Remove the quarter that was longest unused."""
        used: list[tuple[float, Path]] = []
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(FileNotFoundError):  # another exploration forgets too
                used.append((path.stat().st_mtime, path))
        for _, path in sorted(used)[: max(len(used) - self._most * 3 // 4, 0)]:
            path.unlink(missing_ok=True)
        self._count = min(len(used), self._most * 3 // 4)
