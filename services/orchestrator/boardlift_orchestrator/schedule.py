"""Decide where a board stage is queued, and which boards are gone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from boardlift.v1 import job_pb2

_NAMED_BOARDS: Final = 5


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
    governor: str = ""
    """Its CPU's clock governor when it was last heard of; empty when unknown."""
    gone: bool = False
    """True when it has given no sign of life for so long that nobody should wait for it."""

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
        needs: Capability that the run needs; where no registered board has it, or only boards that are long gone, any
            board may refuse the run.

    Returns:
        `id.<board>` for a named board or the best one that fits, `pool.<target>` when any board will do, or
        "" when nobody can take it now.
    """
    if selector.id:
        return f"id.{selector.id}"
    known = [board for board in boards if board.target == target and has_labels(board.labels, selector.labels)]
    gifted = [board for board in known if needs in board.capabilities and not board.gone]
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


def describe_wait(selector: job_pb2.BoardSelector, target: str, boards: Sequence[BoardView], needs: str = "") -> str:
    """Say what a stage that nobody has begun waits for, and what is the matter with each board that it could go to."""
    if selector.id:
        named = next((board for board in boards if board.id == selector.id), None)
        state = f"it is {_state(named)}; see `boardlift boards`" if named else "it has not registered"
        return f"waiting for the board {selector.id}: {state}"
    labels = ",".join(f"{name}={value}" for name, value in sorted(selector.labels.items()))
    wanted = " and ".join(
        [*([f"the labels {labels}"] if labels else []), *([f"the capability {needs}"] if needs else [])]
    )
    known = [board for board in boards if board.target == target and has_labels(board.labels, selector.labels)]
    known = [board for board in known if needs in board.capabilities] or known
    states = [f"{board.id} is {_state(board)}" for board in sorted(known, key=lambda board: board.id)[:_NAMED_BOARDS]]
    more = f" and {len(known) - _NAMED_BOARDS} more" if len(known) > _NAMED_BOARDS else ""
    nobody = f"no {'such ' if wanted else ''}board of the target {target} has registered"
    return f"waiting for a board{' with ' if wanted else ''}{wanted}: {'; '.join(states) + more or nobody}"


def _state(board: BoardView) -> str:
    if not board.online:
        return "long gone" if board.gone else "offline"
    if not board.reachable:
        return "not reached by the orchestrator"
    if board.leased:
        return "lent to a person"
    if not board.in_rotation:
        return "out of rotation"
    return f"busy with {board.busy_job}" if board.busy_job else "free"


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
