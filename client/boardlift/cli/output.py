"""Print for people or for programs: aligned plain tables with colour on terminals, JSON when asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from boardlift.errors import BoardliftError
from boardlift.models import Failure, Finding, to_plain

_STYLES = {
    "pass": "bold green",
    "succeeded": "green",
    "fail": "bold red",
    "failed": "bold red",
    "error": "bold red",
    "undecided": "bold yellow",
    "warning": "yellow",
    "running": "cyan",
    "cancelled": "yellow",
    "missing": "bold yellow",
    "ok": "green",
}


class Output:
    """Standard output for results, standard error for everything else."""

    def __init__(self, *, json_mode: bool) -> None:
        """Print JSON only when `json_mode`."""
        self.json_mode = json_mode
        self._console = Console(file=sys.stdout, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._errors = Console(file=sys.stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def emit(self, value: Any) -> None:
        """Print a value as JSON, always."""
        sys.stdout.write(json.dumps(to_plain(value), indent=None if not sys.stdout.isatty() else 2) + "\n")
        sys.stdout.flush()

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line of a result; nothing in JSON mode."""
        if not self.json_mode:
            self._console.print(Text(printable(text), style=style))

    def note(self, text: str) -> None:
        """Print a line that is no result, on standard error; nothing in JSON mode."""
        if not self.json_mode:
            self._errors.print(Text(printable(text)))

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print an aligned table; nothing in JSON mode."""
        if not self.json_mode:
            for position, cells in enumerate(align(headers, rows)):
                text = Text()
                for cell in cells:
                    text.append(printable(cell), style="bold" if not position else _STYLES.get(cell.strip(), ""))
                text.rstrip()
                self._console.print(text)

    def failure(self, failure: Failure) -> None:
        """Print why a stage said no."""
        self._problem(failure.code, failure.message, failure.subject, failure.remedy)
        if not self.json_mode:
            for text in failure.evidence[-8:]:
                self._errors.print(Text(printable(f"    | {text}")))

    def findings(self, findings: Iterable[Finding]) -> None:
        """Print findings, a line each, with their remedies."""
        for finding in findings:
            where = f" [{finding.subject}]" if finding.subject else ""
            self.line(f"{finding.severity or 'note'} {finding.code}{where}: {finding.message}", _style_of(finding))
            if finding.remedy:
                self.line(f"    remedy: {finding.remedy}")

    def error(self, error: BoardliftError) -> None:
        """Print an error: code, what is at fault, one remedy."""
        known = ("subject", "file", "field", "node", "input")
        subject = next((error.metadata[key] for key in known if error.metadata.get(key)), "")
        if self.json_mode:
            plain = {"code": error.reason, "message": error.message, "subject": subject, "remedy": error.remedy}
            self.emit({"error": {**plain, "metadata": error.metadata}})
            return
        self._problem(error.reason, error.message, subject, error.remedy)

    def _problem(self, code: str, message: str, subject: str, remedy: str) -> None:
        if self.json_mode:
            return
        head = (printable(code), "bold")
        self._errors.print(Text.assemble(("error ", "bold red"), head, printable(f": {message}")))
        if subject:
            self._errors.print(Text(printable(f"    at: {subject}")))
        if remedy:
            self._errors.print(Text(printable(f"    remedy: {remedy}")))


def printable(text: str) -> str:
    """Return text without what a terminal would obey: node names and tools' lines come from outside."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def align(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return header and rows with every cell padded to its column, two spaces between columns."""
    table = [list(headers), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    return [[cell.ljust(width + 2) for cell, width in zip(row, widths, strict=True)] for row in table]


def size_text(size_bytes: int) -> str:
    """Return a size for people."""
    value, unit = float(size_bytes), "B"
    for unit in ("B", "kB", "MB", "GB"):  # noqa: B007  (the unit that was reached is the result)
        if value < 1000:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"


def seconds_text(seconds: float | None) -> str:
    """Return a time span for people; empty when unknown."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def _style_of(finding: Finding) -> str:
    return _STYLES.get(finding.severity, "")
