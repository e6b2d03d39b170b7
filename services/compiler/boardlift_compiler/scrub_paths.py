"""Take the build machine's paths out of what people read; pure."""

from __future__ import annotations

import re
from pathlib import Path

TEMPORARY = re.compile(r"/t/tmp[A-Za-z0-9_]{8}(?=/)")


class Scrubber:
    """Replaces the run folder and the toolchain's folder by neutral names."""

    def __init__(self, run: Path, toolchain: Path) -> None:
        """Know the two folders."""
        self._pairs = ((str(run), "{run}"), (str(toolchain), "{toolchain}"))

    def line(self, text: str) -> str:
        """Return the text without the machine's paths and random names."""
        for path, name in self._pairs:
            text = text.replace(path, name)
        return TEMPORARY.sub("/t/tmp", text)

    def file(self, path: Path) -> None:
        """Scrub a text file in place."""
        path.write_text(self.line(path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
