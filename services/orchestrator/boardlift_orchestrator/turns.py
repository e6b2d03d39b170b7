"""Whose job is next: submitters take turns, and only so many jobs are worked on at a time. Pure.

A stage waits in its service's queue behind every stage that was handed out before it. So what bounds the wait of a
single job is how many jobs of others have been let in, not how many were submitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boardlift_orchestrator.index import JobLine


@dataclass(frozen=True)
class Room:
    """How many jobs are let in."""

    front: int
    """Jobs of all submitters that may have stages at the stage services. A submitter with no job in work is let in
    beyond it, up to twice as many."""
    board: int
    """Jobs of one submitter that may have stages at boards: a board that never comes holds up nobody else."""


def choose_next(lines: Iterable[JobLine], room: Room) -> list[str]:
    """Return the ids of waiting jobs to let in now, in order.

    The submitter with the fewest jobs in work goes first, then the one who has waited longest; among a submitter's own
    jobs the higher priority goes first, then the older job.
    """
    known = list(lines)
    active = Counter(line.submitter for line in known if line.active)
    boards = Counter(line.submitter for line in known if line.active and line.board)
    front = sum(line.active and line.front for line in known)
    waiting: dict[str, list[JobLine]] = {}
    for line in sorted((item for item in known if item.waiting), key=_own_order, reverse=True):
        waiting.setdefault(line.submitter, []).append(line)  # the next one is the last
    chosen = []
    while waiting:
        able = [
            name
            for name in waiting
            if (front < room.front and boards[name] < room.board) or (not active[name] and front < 2 * room.front)
        ]
        if not able:
            break
        name = min(able, key=lambda name: (active[name], waiting[name][-1].created, name))
        chosen.append(waiting[name].pop().id)
        if not waiting[name]:
            del waiting[name]
        active[name] += 1
        front += 1
    return chosen


def has_room(lines: Sequence[JobLine], new: JobLine, room: Room) -> bool:
    """Tell whether a new job may begin at once, among those that wait already."""
    return new.id in choose_next([*lines, new], room)


def jobs_before(lines: Iterable[JobLine], job: JobLine) -> int:
    """Return how many waiting jobs of the same submitter go before one of them."""
    own = [line for line in lines if line.waiting and line.submitter == job.submitter and line.id != job.id]
    return sum(_own_order(line) < _own_order(job) for line in own)


def _own_order(line: JobLine) -> tuple[int, float, str]:
    return (-line.priority, line.created, line.id)
