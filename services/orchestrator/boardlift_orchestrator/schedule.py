"""Decide where a board stage is queued, and which boards are gone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from boardlift.v1 import job_pb2


@dataclass(frozen=True)
class BoardView:
    """What the scheduler knows about a board."""

    id: str
    """Its id."""
    target: str
    """Target it serves."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its labels."""
    online: bool = True
    """True while its presence is renewed."""
    in_rotation: bool = True
    """True when it can take work."""
    reachable: bool = True
    """False when it is to be dialled and can't be."""
    leased: bool = False
    """True while a person has it."""
    busy_job: str = ""
    """Job it works for."""
    queued: int = 0
    """Tasks queued for it alone."""
    capabilities: tuple[str, ...] = ()
    """What it can do."""

    @property
    def usable(self) -> bool:
        """True when it takes tasks now or after the one it works on."""
        return self.online and self.in_rotation and not self.leased


def choose_place(
    selector: job_pb2.BoardSelector,
    target: str,
    boards: Sequence[BoardView],
    avoid: Sequence[str] = (),
    needs: str = "",
) -> str:
    """Return where to queue a board task.

    Args:
        selector: Which boards may run it.
        target: Target of the job.
        boards: All registered boards.
        avoid: Boards on which it broke; taken only when there is no other.
        needs: Capability that the run needs; where no registered board has it, any board may refuse the run.

    Returns:
        `id.<board>` for a named board or the best one that fits, `pool.<target>` when any board will do, or
        "" when nobody can take it now.
    """
    if selector.id:
        return f"id.{selector.id}"
    known = [board for board in boards if board.target == target and has_labels(board.labels, selector.labels)]
    gifted = [board for board in known if needs in board.capabilities]
    picky = bool(selector.labels or gifted)
    if not picky and not avoid:
        return f"pool.{target}"
    fitting = [board for board in gifted or known if board.usable]
    fresh = [board for board in fitting if board.id not in avoid]
    if not picky and not fresh:
        return f"pool.{target}"
    if not fitting:
        return ""
    best = min(fresh or fitting, key=lambda board: (board.queued + bool(board.busy_job), board.id))
    return f"id.{best.id}"


def has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Tell whether all wanted labels are there."""
    return all(labels.get(name) == value for name, value in wanted.items())


def is_lost(place: str, selector: job_pb2.BoardSelector, boards: Sequence[BoardView], begun: bool) -> bool:
    """Tell whether a task must be queued elsewhere.

    Args:
        place: Where it was queued.
        selector: Which boards may run it; a board named by the user is waited for.
        boards: All registered boards.
        begun: True when the board has begun it: then only its death counts, or that nobody reaches it any more; else
            also that it left the rotation.
    """
    if not place.startswith("id.") or selector.id:
        return False
    board = next((item for item in boards if item.id == place[3:]), None)
    if board is None or not board.online or not board.reachable:
        return True
    return not begun and not board.usable
