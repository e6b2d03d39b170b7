"""Split the tool's output into records: pure, line by line, for console text and log files of 1.16 to 1.24.

A record is a line that starts with a time stamp; lines without one continue it (tables, YAML dumps, arrays). Progress
bars are drawn with carriage returns and are split off as lines of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STAMP = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(?P<ms>\d{3})\d* "
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: |$)|file: \S+ func: \S+ line No: \d+ ?)(?P<text>.*)"
)
OLD_STAMP = re.compile(r"^\[\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\] ")
MAX_LINE = 20_000


@dataclass(frozen=True)
class LogLine:
    """One line of output, cleaned."""

    text: str
    """The message without stamp and colour; the bare line when it has no stamp."""
    level: str = ""
    """Level word of a console line; empty in log files and for continuation lines."""
    time: datetime | None = None
    """Local time of the stamp; None for a continuation."""

    @property
    def starts_record(self) -> bool:
        """True when the line carries a stamp."""
        return self.time is not None


def clean_lines(raw: str) -> list[str]:
    """Return the visible lines of one raw output line: colours removed, progress redraws split."""
    plain = ANSI.sub("", raw[:MAX_LINE])
    return [part for part in plain.replace("\r", "\n").split("\n") if part.strip()]


def split_line(raw: str) -> list[LogLine]:
    """Parse one raw line; never fails: what is not understood is a continuation line.

    A stamp in the middle of a line counts too: progress bars end without a line feed, so the next record may follow
    them directly.
    """
    result: list[LogLine] = []
    for part in clean_lines(raw):
        match = STAMP.search(part)
        if match is None:
            result.append(LogLine(part.rstrip()))
            continue
        if part[: match.start()].strip():
            result.append(LogLine(part[: match.start()].rstrip()))
        time = _time(match["time"], match["ms"])
        result.append(LogLine(OLD_STAMP.sub("", match["text"]).rstrip(), match["level"] or "", time))
    return result


def _time(stamp: str, milliseconds: str) -> datetime | None:
    try:
        return datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S").replace(microsecond=int(milliseconds) * 1000)
    except ValueError:
        return None
