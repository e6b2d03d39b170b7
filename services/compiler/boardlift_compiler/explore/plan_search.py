"""Plan a search and decide after each round who goes on; pure.

Few samples and cheap builds first, all samples and real builds last. Latency of cheap builds is compared only among
candidates of the same form: the low optimise levels pack weights so differently that between forms they mislead (the
block-diagonal rewrite costs 1.9 times the BPU time at O1 and wins at O2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from boardlift_compiler.explore.judge import Goal

PREVIEW_LEVEL, FINAL_LEVEL = "O1", "O2"
AS_GOOD = 1.1
"""Factor on the loss within which two candidates count as equally good."""
SLACK = 0.5
"""Share of the target's loss by which a candidate may miss it while samples are few."""


@dataclass(frozen=True)
class Round:
    """One round."""

    level: str
    """Optimise level of its builds."""
    candidates: int
    """Most candidates that take part."""
    calibration: int
    """Calibration samples."""
    heldout: int
    """Held-out samples."""

    @property
    def final(self) -> bool:
        """True for the round whose figures count."""
        return self.level == FINAL_LEVEL


@dataclass(frozen=True)
class Score:
    """What a round showed of one candidate."""

    name: str
    """Candidate."""
    form: str
    """Its form of the model."""
    value: float
    """The goal's metric."""
    board_ms: float
    """Estimated board time."""


def plan_rounds(
    candidates: int,
    calibration: int,
    heldout: int,
    *,
    forms: int = 1,
    first: int = 8,
    factor: int = 3,
    finalists: int = 6,
) -> list[Round]:
    """Return the rounds of a search.

    Args:
        candidates: How many there are.
        calibration: Calibration samples there are.
        heldout: Held-out samples there are.
        forms: Forms of the model; each keeps at least one candidate to the end.
        first: Samples of each kind in the first round.
        factor: Growth of samples and shrinkage of candidates, at least 2.
        finalists: Most candidates in the last round.
    """
    finalists = max(finalists, forms)
    rounds: list[Round] = []
    left, samples = candidates, first
    while left > finalists and samples < max(calibration, heldout):
        rounds.append(Round(PREVIEW_LEVEL, left, min(samples, calibration), min(samples, heldout)))
        left = max(math.ceil(left / factor), finalists)
        samples *= factor
    if left > finalists:
        rounds.append(Round(PREVIEW_LEVEL, left, calibration, heldout))
        left = finalists
    return [*rounds, Round(FINAL_LEVEL, left, calibration, heldout)]


def dominates(a: Score, b: Score, goal: Goal) -> bool:
    """Tell whether `a` is at least as good as `b` in both, and better in one."""
    loss_a, loss_b = goal.loss(a.value), goal.loss(b.value)
    return loss_a <= loss_b and a.board_ms <= b.board_ms and (loss_a < loss_b or a.board_ms < b.board_ms)


def pareto_front(scores: Sequence[Score], goal: Goal) -> list[Score]:
    """Return the scores that none dominates, fastest first."""
    front = [s for s in scores if not math.isnan(s.value) and not any(dominates(o, s, goal) for o in scores)]
    return sorted(front, key=lambda s: (s.board_ms, goal.loss(s.value)))


def order_within_form(scores: Sequence[Score], goal: Goal) -> list[Score]:
    """Return candidates of one form, those to keep first.

    Who reaches the target with some slack comes before who does not; then front by front, and within a front first the
    best, then the fastest, then the rest by loss.
    """
    ordered: list[Score] = []
    for reached in (True, False):
        rest = [s for s in scores if goal.reached(s.value, SLACK) is reached]
        while rest:
            front = pareto_front(rest, goal) or rest
            best = min(front, key=lambda s: (goal.loss(s.value), s.board_ms))
            fastest = min(front, key=lambda s: s.board_ms)
            others = sorted((s for s in front if s not in (best, fastest)), key=lambda s: goal.loss(s.value))
            ordered += list(dict.fromkeys([best, fastest, *others]))
            rest = [s for s in rest if s not in front]
    return ordered


def choose_survivors(scores: Sequence[Score], keep: int, goal: Goal) -> list[str]:
    """Return the names that go on, taken in turn from every form."""
    queues = [order_within_form([s for s in scores if s.form == form], goal) for form in _forms(scores)]
    taken: list[str] = []
    depth = 0
    while len(taken) < keep and any(depth < len(q) for q in queues):
        taken += [q[depth].name for q in queues if depth < len(q)]
        depth += 1
    return taken[: max(keep, len(queues))]


def _forms(scores: Sequence[Score]) -> list[str]:
    return list(dict.fromkeys(s.form for s in scores))


def choose_best(scores: Sequence[Score], goal: Goal) -> str:
    """Return the fastest that reaches the target, or is as good as the best where there is none; empty when none."""
    usable = [s for s in scores if not math.isnan(s.value)]
    if goal.target is not None:
        reaching = [s for s in usable if goal.reached(s.value)]
        return min(reaching, key=lambda s: (s.board_ms, goal.loss(s.value))).name if reaching else ""
    if not usable:
        return ""
    least = min(goal.loss(s.value) for s in usable)
    as_good = [s for s in usable if goal.loss(s.value) <= AS_GOOD * least]
    return min(as_good, key=lambda s: (s.board_ms, goal.loss(s.value))).name
