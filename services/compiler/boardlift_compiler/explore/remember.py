"""Remember what was measured, by digest, so that an interrupted exploration goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


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

    def __init__(self, folder: Path) -> None:
        """Use `folder`, made when absent."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def recall(self, key: str) -> Any | None:
        """Return what is kept under a digest; None when there is nothing or it is damaged."""
        path = self._folder / f"{key}.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError):
            path.unlink(missing_ok=True)  # damaged: it is made again
            return None

    def keep(self, key: str, value: Any) -> None:
        """Keep a value under a digest."""
        partial = self._folder / f"{key}.tmp"
        partial.write_text(json.dumps(value), encoding="utf-8")
        partial.replace(self._folder / f"{key}.json")
