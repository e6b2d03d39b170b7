"""Say in words what a search showed; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardlift_compiler.explore.judge import Goal
from boardlift_compiler.explore.plan_search import AS_GOOD, Score, choose_best
from boardlift_compiler.findings import Finding


@dataclass(frozen=True)
class Shown:
    """What one round showed of one candidate."""

    score: Score
    """Metric and board time."""
    plan: str
    """Precision plan."""
    subgraphs: int
    """BPU subgraphs."""
    bpu_us: float
    """The compiler's estimate."""
    level: str
    """Optimise level of the build."""
    number: int
    """Round, from 0."""

    def text(self, goal: Goal) -> str:
        """Return the figures as a phrase, each with its kind."""
        parts = "one subgraph" if self.subgraphs == 1 else f"{self.subgraphs} subgraphs"
        return (
            f"{self.score.name}: {self.bpu_us:.1f} us (estimated) in {parts}, board {self.score.board_ms:.3f} ms"
            f" (estimated), {goal.metric} {self.score.value:.6f} (simulated)"
        )


def conclude(history: Sequence[Sequence[Shown]], baseline: str, goal: Goal) -> list[Finding]:
    """Return conclusions.

    Args:
        history: Per round what it showed.
        baseline: Form that came first.
        goal: What candidates are judged by.
    """
    found: list[Finding] = []
    for form in dict.fromkeys(s.score.form for shown in history for s in shown):
        found += _split_int8(history, form, goal)
    if history:
        found += _better_forms(history[-1], baseline, goal)
    return found


def _split_int8(history: Sequence[Sequence[Shown]], form: str, goal: Goal) -> list[Finding]:
    for shown in reversed(history):
        int8 = [s for s in shown if s.score.form == form and s.plan == "int8" and s.subgraphs > 1]
        whole = [s for s in shown if s.score.form == form and s.plan != "int8"]
        for split in sorted(int8, key=lambda s: goal.loss(s.score.value))[:1]:
            better = [
                s
                for s in whole
                if s.subgraphs < split.subgraphs
                and s.score.board_ms < split.score.board_ms
                and goal.loss(s.score.value) <= goal.loss(split.score.value)
            ]
            if not better:
                continue
            full = [s for s in better if s.plan == "int16"]
            best = min(full or better, key=lambda s: s.score.board_ms)
            code = "INT16_BEATS_SPLIT_INT8" if full else "MIXED_BEATS_SPLIT_INT8"
            text = f"int8 is split: slower and worse. {split.text(goal)}; {best.text(goal)} ({best.level})."
            return [Finding(code, "note", text, form, f"Use {best.score.name}.")]
    return []


def _better_forms(shown: Sequence[Shown], baseline: str, goal: Goal) -> list[Finding]:
    by_name: Mapping[str, Shown] = {s.score.name: s for s in shown}
    forms = dict.fromkeys(s.score.form for s in shown)
    best = {f: choose_best([s.score for s in shown if s.score.form == f], goal) for f in forms}
    if not best.get(baseline):
        return []
    old, found = by_name[best[baseline]], []
    for form, name in best.items():
        if form == baseline or not name:
            continue
        new = by_name[name]
        if new.score.board_ms >= old.score.board_ms:
            continue
        if goal.loss(new.score.value) > AS_GOOD * goal.loss(old.score.value) and not (
            goal.target is not None and goal.reached(new.score.value)
        ):
            continue
        more = " although the compiler's own estimate is higher" if new.bpu_us > old.bpu_us else ""
        text = f"{form} is faster than {baseline}{more}. {old.text(goal)}; {new.text(goal)} ({new.level})."
        found.append(Finding("FORM_BEATS_BASELINE", "note", text, form, f"Use {name}."))
    return found
