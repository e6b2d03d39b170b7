"""Jobs, their stages and their events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from boardlift.models.figure import Artifact, Failure
from boardlift.models.verdict import Verdict

ENDED = ("succeeded", "failed", "cancelled")
"""States in which a job stays."""


@dataclass(frozen=True)
class Stage:
    """One stage of a job."""

    stage: str
    """ingest, transform, check, compile, simulate, board or verdict."""
    variant: str
    """Variant it is for; empty for shared stages."""
    state: str
    """waiting, running, succeeded, failed, skipped or cancelled."""
    attempt: int = 1
    """Number of the attempt."""
    worker: str = ""
    """Who ran it."""
    started: datetime | None = None
    """When it was first handed out."""
    begun: datetime | None = None
    """When a worker began the current attempt; before that it was in the queue."""
    ended: datetime | None = None
    """When it ended."""
    cached: bool = False
    """True when a stored result was used."""
    failure: Failure | None = None
    """Why it failed."""
    result: Artifact | None = None
    """Its whole result, a serialised message."""
    note: str = ""
    """What a board stage that nobody has begun waits for; only of a single job, not in lists and events."""

    @property
    def seconds(self) -> float | None:
        """Time between start and end; None while it has not ended."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None


@dataclass(frozen=True)
class JobInfo:
    """A job as it was at one moment."""

    id: str
    """Its id."""
    state: str
    """queued, running, succeeded, failed, cancelling or cancelled."""
    name: str = ""
    """Name for people."""
    model_name: str = ""
    """Name of the model file as the user knows it."""
    target: str = ""
    """Chip and toolchain."""
    variants: tuple[str, ...] = ()
    """Names of the variants."""
    stages: tuple[Stage, ...] = ()
    """Stages in order."""
    verdict: Verdict | None = None
    """The verdict, once there is one."""
    error: Failure | None = None
    """Why the machinery failed."""
    created: datetime | None = None
    """When it was submitted."""
    started: datetime | None = None
    """When its first stage began."""
    ended: datetime | None = None
    """When it ended."""
    artifacts: tuple[Artifact, ...] = ()
    """Files of the result."""
    owner: str = ""
    """Who submitted it."""
    command: tuple[str, ...] = ()
    """Command line that submitted it."""
    submitter: str = ""
    """Whose turn it takes."""
    waiting_turn: bool = False
    """True while it waits for its submitter's turn."""
    model: Artifact | None = None
    """The model as submitted; None in lists."""
    dataset: Artifact | None = None
    """The samples; None in lists."""

    @property
    def done(self) -> bool:
        """True when it has ended."""
        return self.state in ENDED


@dataclass(frozen=True)
class Progress:
    """How far a stage is."""

    step: str
    """The tool's own current step."""
    fraction: float = 0.0
    """Share of the stage that is done."""
    done: int = 0
    """Items done in this step; 0 when not counted."""
    total: int = 0
    """Items in this step; 0 when not counted."""
    elapsed_s: float = 0.0
    """Time since the stage began."""
    remaining_s: float | None = None
    """Expected time until it ends."""


@dataclass(frozen=True)
class LogLine:
    """One line of a tool."""

    text: str
    """The line."""
    source: str = ""
    """Where it came from."""


@dataclass(frozen=True)
class JobEvent:
    """Something that happened to a job; one of `job`, `progress` and `log` is set."""

    sequence: int
    """Resume token."""
    time: datetime | None = None
    """When it happened."""
    stage: str = ""
    """Stage it is about; empty for the job itself."""
    variant: str = ""
    """Variant it is about."""
    job: JobInfo | None = None
    """The job, when it changed."""
    progress: Progress | None = None
    """How far the stage is."""
    log: LogLine | None = None
    """A line of a tool."""
