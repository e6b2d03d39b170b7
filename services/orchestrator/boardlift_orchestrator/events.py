"""What can happen to a job, and what the state machine can ask for. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from boardlift_orchestrator.record import Failure, Ref


@dataclass(frozen=True)
class Outcome:
    """An attempt has ended."""

    stage: str
    """Its stage."""
    variant: str
    """Its variant."""
    attempt: int
    """Number of the attempt."""
    worker: str = ""
    """Who ran it."""
    result: Ref | None = None
    """The whole result; None when the call failed."""
    failure: Failure | None = None
    """Set when the tool said no or the call failed."""
    retryable: bool = False
    """True when another attempt may help."""
    cancelled: bool = False
    """True when it was stopped."""
    cached: bool = False
    """True when a stored result was used."""


@dataclass(frozen=True)
class Started:
    """An attempt has been begun by a worker."""

    stage: str
    """Its stage."""
    variant: str
    """Its variant."""
    attempt: int
    """Number of the attempt."""
    worker: str
    """Who runs it."""


@dataclass(frozen=True)
class Cancel:
    """Somebody asked the job to stop."""


@dataclass(frozen=True)
class Admit:
    """It is the job's turn."""


@dataclass(frozen=True)
class Tick:
    """Time has passed; the deadline may be over, or something may have been lost."""


@dataclass(frozen=True)
class Lost:
    """The board that an attempt was queued for is gone."""

    stage: str
    """Its stage."""
    variant: str
    """Its variant."""
    attempt: int
    """Number of the attempt."""


@dataclass(frozen=True)
class Placed:
    """An attempt at the board stage has been queued somewhere."""

    stage: str
    """Its stage."""
    variant: str
    """Its variant."""
    attempt: int
    """Number of the attempt."""
    place: str
    """Where: `pool.<target>` or `id.<board>`."""


@dataclass(frozen=True)
class Broken:
    """The orchestrator itself can't go on with this job."""

    failure: Failure
    """Why."""


Event = Outcome | Started | Cancel | Admit | Tick | Lost | Placed | Broken


@dataclass(frozen=True)
class Publish:
    """Queue the current attempt of a stage."""

    key: str
    """Key of the stage."""
    attempt: int
    """Number of the attempt."""
    delay_s: float = 0.0
    """Seconds to wait."""


@dataclass(frozen=True)
class Withdraw:
    """Remove a queued task that nobody will take."""

    key: str
    """Key of the stage."""
    place: str
    """Where: `pool.<target>` or `id.<board>`."""


@dataclass(frozen=True)
class StopRunning:
    """Tell workers to stop; an empty key means the whole job."""

    key: str = ""
    """Key of the stage."""
    attempt: int = 0
    """Number of the attempt."""


@dataclass(frozen=True)
class PurgeTasks:
    """Remove all of the job's queued tasks."""


@dataclass(frozen=True)
class Arm:
    """Have a Tick come after a delay."""

    name: str
    """One timer per job and name."""
    delay_s: float
    """Seconds to wait."""


@dataclass(frozen=True)
class Disarm:
    """Forget a timer."""

    name: str
    """Its name."""


Action = Publish | Withdraw | StopRunning | PurgeTasks | Arm | Disarm
