"""Remember how long past runs took, for the remaining time of the next ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from boardlift_compiler.keep_text import keep_text
from boardlift_compiler.track_progress import PastRun, RunSize

MAX_RUNS = 500


class History:
    """Past runs in a file of JSON lines; the newest MAX_RUNS count. Losing it costs nothing but a guess."""

    def __init__(self, path: Path) -> None:
        """Use ``path``; what cannot be read there is ignored."""
        self._path = path
        self.runs: list[PastRun] = []
        if path.is_file():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-MAX_RUNS:]:
                run = _parse(line)
                if run is not None:
                    self.runs.append(run)

    def add(self, size: RunSize, step_seconds: dict[str, float]) -> None:
        """Remember a finished run; where it can't be written, until the service ends."""
        self.runs = [*self.runs, PastRun(size, step_seconds)][-MAX_RUNS:]
        lines = [json.dumps({"size": asdict(r.size), "steps": dict(r.step_seconds)}) for r in self.runs]
        keep_text(self._path, "\n".join(lines) + "\n")


def _parse(line: str) -> PastRun | None:
    try:
        record = json.loads(line)
        return PastRun(RunSize(**record["size"]), {k: float(v) for k, v in record["steps"].items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
