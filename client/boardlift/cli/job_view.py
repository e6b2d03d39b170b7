"""What a watcher of a job knows: rows for a live view, lines for a log. No printing here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from boardlift.cli.output import seconds_text
from boardlift.models import JobEvent, JobInfo, Progress, Stage


@dataclass
class Row:
    """One stage of one variant."""

    stage: str
    """Stage."""
    variant: str
    """Variant; empty for shared stages."""
    state: str = "waiting"
    """State of the stage."""
    step: str = ""
    """The tool's own current step."""
    fraction: float = 0.0
    """Share that is done."""
    remaining_s: float | None = None
    """Expected rest when it was last heard of."""
    began: float | None = None
    """Start by this machine's clock."""
    seconds: float | None = None
    """How long it took, once it has ended."""
    cached: bool = False
    """True when a stored result was used."""
    attempt: int = 0
    """Number of the attempt; 0 before the first."""
    failure: str = ""
    """Code of its failure."""
    note: str = ""
    """What boardlift itself says of it, for example what it waits for; empty once it does something."""

    @property
    def label(self) -> str:
        """Name of the row."""
        return f"{self.stage} {self.variant}".strip()


# A watcher gets the job as it is before its history: older states that come later are no news.
_JOB_ORDER = ("queued", "running", "cancelling", "cancelled", "failed", "succeeded")
_STAGE_ORDER = ("waiting", "running", "skipped", "cancelled", "failed", "succeeded")


class JobView:
    """Takes events and tells what changed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with nothing known."""
        self._clock = clock
        self._received = clock()
        self.job: JobInfo | None = None
        self.rows: dict[tuple[str, str], Row] = {}

    def update(self, event: JobEvent) -> list[str]:
        """Take an event; return the lines a log should get."""
        self._received = self._clock()
        if event.job:
            return self._take_job(event.job)
        if event.progress:
            return self._take_progress(event, event.progress)
        if event.log and event.log.source == "boardlift":
            return self._take_note(event, event.log.text)
        return []

    def elapsed_s(self, row: Row) -> float | None:
        """Return how long a row has run, or did run."""
        if row.seconds is not None:
            return row.seconds
        return self._clock() - row.began if row.began is not None and row.state == "running" else None

    def remaining_s(self, row: Row) -> float | None:
        """Return the expected rest of a running row."""
        if row.remaining_s is None or row.state != "running":
            return None
        return max(row.remaining_s - (self._clock() - self._received), 0.0)

    def _take_job(self, job: JobInfo) -> list[str]:
        lines = []
        if self.job is None or _later(_JOB_ORDER, self.job.state, job.state):
            lines.append(f"job {job.id} {job.state}")
            self.job = job
        for stage in job.stages:
            key = (stage.stage, stage.variant)
            row = self.rows.setdefault(key, Row(*key))
            same = stage.attempt == row.attempt
            if stage.attempt > row.attempt or (same and _later(_STAGE_ORDER, row.state, stage.state)):
                lines += self._change(row, stage)
        return lines

    def _change(self, row: Row, stage: Stage) -> list[str]:
        row.state, row.attempt, row.cached = stage.state, stage.attempt, stage.cached
        row.failure = stage.failure.code if stage.failure else ""
        if stage.state == "running":
            row.began, row.seconds, row.step, row.fraction, row.note = self._clock(), None, "", 0.0, ""
            return [f"{row.label} running" + (f", attempt {stage.attempt}" if stage.attempt > 1 else "")]
        if stage.state in ("waiting",):
            return []
        row.seconds = stage.seconds if stage.started else None
        words = [stage.state]
        if stage.cached:
            words.append("from the cache")
        elif row.seconds is not None:
            words.append(f"after {seconds_text(row.seconds)}")
        if stage.failure:
            words.append(f"{stage.failure.code}: {stage.failure.message}")
        return [f"{row.label} {', '.join(words)}"]

    def _take_note(self, event: JobEvent, text: str) -> list[str]:
        key = (event.stage, event.variant)
        row = self.rows.setdefault(key, Row(*key))
        if row.state not in ("waiting", "running") or text == row.note:
            return []
        row.note = text
        return [f"{row.label}: {text}"]

    def _take_progress(self, event: JobEvent, progress: Progress) -> list[str]:
        key = (event.stage, event.variant)
        row = self.rows.setdefault(key, Row(*key))
        if row.state in ("succeeded", "failed", "cancelled", "skipped"):
            return []
        row.note, changed = "", progress.step != row.step
        row.state, row.step, row.fraction = "running", progress.step, progress.fraction
        row.remaining_s = progress.remaining_s
        if progress.elapsed_s or row.began is None:
            row.began = self._clock() - progress.elapsed_s
        if not changed or not progress.step:
            return []
        rest = f", about {seconds_text(progress.remaining_s)} left" if progress.remaining_s else ""
        return [f"{row.label}: {progress.step} ({progress.fraction:.0%}{rest})"]


def _later(order: tuple[str, ...], before: str, after: str) -> bool:
    """Return True when a state comes after another one; states of newer servers always do."""
    return after not in order or before not in order or order.index(after) > order.index(before)
