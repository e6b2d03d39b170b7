"""Follow a job on the screen until it ends; Ctrl-C asks whether to detach or to cancel.

On a terminal there is one line per stage and variant, renewed four times a second. Elsewhere every change is a line of
its own. Without anybody to ask, Ctrl-C and SIGTERM cancel the job: what stops a CI run also frees the compiler.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from boardlift._job import Job
from boardlift._threaded import in_thread
from boardlift.cli.job_view import JobView, Row
from boardlift.cli.output import printable, seconds_text
from boardlift.cli.session import Session
from boardlift.errors import BoardliftError
from boardlift.models import JobInfo

CANCEL_PATIENCE_S = 30.0
_MARKS = {"waiting": "·", "running": "▶", "succeeded": "✓", "failed": "✗", "skipped": "-", "cancelled": "■"}
_COLOURS = {"running": "cyan", "succeeded": "green", "failed": "bold red", "cancelled": "yellow"}


def follow(session: Session, job: Job, timeout_s: float | None = None, heading: str = "") -> JobInfo | None:
    """Show a job until it ends and return it; None when the user detached.

    Args:
        session: Where and how to print.
        job: The job.
        timeout_s: How long to follow it.
        heading: Printed first; from then on Ctrl-C is about the job.

    Raises:
        DeadlineError: `timeout_s` passed.
    """
    with _signals_interrupt():
        try:
            if heading:
                session.output.note(heading)
            _show(session, job, timeout_s)
        except KeyboardInterrupt:
            if session.interactive and _ask(job) == "detach":
                session.output.note(f"Detached; the job goes on. Follow it again: boardlift jobs watch {job.id}")
                return None
            return _cancel(session, job)
    return job.refresh()


def _show(session: Session, job: Job, timeout_s: float | None) -> None:
    view, output = JobView(), session.output
    if not sys.stderr.isatty() or session.json:
        for event in in_thread(job.events(timeout=timeout_s)):
            for line in view.update(event):
                output.note(line)
        return
    screen = _Screen(view)
    with Live(screen, console=Console(file=sys.stderr), refresh_per_second=4, transient=False):
        for event in in_thread(job.events(timeout=timeout_s)):
            view.update(event)


def _ask(job: Job) -> str:
    with contextlib.suppress(KeyboardInterrupt, click.Abort):
        answer: str = click.prompt(
            f"\nJob {job.id} is running. Detach (it goes on) or cancel it?",
            type=click.Choice(["detach", "cancel"]),
            default="detach",
            err=True,
        )
        return answer
    return "cancel"


def _cancel(session: Session, job: Job) -> JobInfo:
    session.output.note(f"Cancelling {job.id} ...")
    job.cancel()
    with contextlib.suppress(KeyboardInterrupt, BoardliftError):
        for _ in in_thread(job.events(timeout=CANCEL_PATIENCE_S)):
            pass
    return job.refresh()


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C for a while; outside the main thread nothing can be installed and nothing comes."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Screen:
    """The live view."""

    def __init__(self, view: JobView) -> None:
        self._view = view

    def __rich__(self) -> RenderableType:
        table = Table(box=None, show_header=False, pad_edge=False)
        for row in self._view.rows.values():
            table.add_row(*self._cells(row))
        return table

    def _cells(self, row: Row) -> tuple[Text, ...]:
        colour = _COLOURS.get(row.state, "dim")
        rest = self._view.remaining_s(row)
        detail = printable(row.failure or row.step)
        if row.state == "running":
            detail = f"{printable(row.step)} {row.fraction:.0%}" if row.step else printable(row.note)
        elif row.state == "succeeded":
            detail = "from the cache" if row.cached else ""
        return (
            Text(_MARKS.get(row.state, "?"), style=colour),
            Text(row.stage),
            Text(row.variant),
            Text(seconds_text(self._view.elapsed_s(row)), justify="right"),
            Text(f"about {seconds_text(rest)} left" if rest else ""),
            Text(detail, style=colour),
        )
