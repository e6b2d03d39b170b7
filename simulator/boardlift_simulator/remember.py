"""What the toolchain says about a model's code is the same every time: kept below HOME, by digest.

An agent starts the stand-in a dozen times and more per run, in a private HOME that it removes afterwards. Only reports
are kept, never what the code computes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FOLDER = ".cache/boardlift-simulator"


def remember(tool: str, subject: Path, make: Callable[[], Any]) -> Any:
    """Returns what `make` returned for the same bytes and the same tool before, or calls it.

    Args:
        tool: path of the program; another version of it counts as another tool.
        subject: file that the report is about.
        make: makes the report, as JSON-able data.
    """
    home = os.environ.get("HOME", "")
    if not home:
        return make()
    facts = Path(tool).stat()
    stamp = f"{tool}\n{facts.st_mtime_ns}\n{facts.st_size}\n"
    digest = hashlib.sha256(stamp.encode() + subject.read_bytes()).hexdigest()
    path = Path(home) / _FOLDER / f"{digest}.json"
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text())
    report = make()
    with contextlib.suppress(OSError):  # a HOME that can't be written only costs time
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(report))
        part.replace(path)
    return report
