"""Follow a run's progress from its lines and guess what is left; pure.

The share of each step comes from past runs of similar size (:class:`History`), so that the bar moves evenly whether
calibration or compilation dominates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

STEPS = ("prepare", "optimise", "calibrate", "quantise", "compile", "finish")
TYPICAL_SECONDS = {"prepare": 1.0, "optimise": 0.3, "calibrate": 3.0, "quantise": 0.5, "compile": 5.0, "finish": 0.3}
START = re.compile(r"^Start to (prepare|optimize|calibrate|quantize|compile|parse) the ")
STEP_OF_WORD = {"prepare": "prepare", "parse": "prepare", "optimize": "optimise", "calibrate": "calibrate",
                "quantize": "quantise", "compile": "compile"}  # fmt: skip
BAR = re.compile(r"calibration in progress:.*?(\d+)/(\d+) \[")
SUBMODEL = re.compile(r"^Compile submodel: ")
PERCENT = re.compile(r"(\d{1,3})(?:\.\d+)?\s?%")
CLOSING = re.compile(r"^(?:End Model Convert|End model checking|start convert to \*\.bin)")


@dataclass(frozen=True)
class RunSize:
    """What the duration of a run depends on."""

    nodes: int
    """Number of nodes in the model."""
    model_bytes: int
    """Size of the model file in bytes."""
    samples: int
    """Calibration samples."""
    method: str
    """Calibration method asked for."""
    level: str
    """Optimise level."""
    int16: bool = False
    """True when all nodes are asked in int16."""


@dataclass(frozen=True)
class PastRun:
    """A finished run: its size and how long each step took."""

    size: RunSize
    """What was run."""
    step_seconds: Mapping[str, float]
    """Seconds per step of STEPS."""


def predict_steps(size: RunSize, history: Iterable[PastRun]) -> tuple[dict[str, float], bool]:
    """Predict seconds per step from the nearest past run.

    Returns:
        Seconds per step, and True when a comparable past run was found (False means only typical shares).
    """
    best: PastRun | None = None
    best_distance = math.inf
    for past in history:
        if past.size.method != size.method or past.size.level != size.level:
            continue
        distance = abs(math.log((past.size.model_bytes + 1e4) / (size.model_bytes + 1e4)))
        distance += abs(math.log((past.size.nodes + 1) / (size.nodes + 1)))
        distance += 0.2 * abs(math.log((past.size.samples + 1) / (size.samples + 1)))
        distance += 0.5 * (past.size.int16 != size.int16)
        if distance < best_distance:
            best, best_distance = past, distance
    if best is None or best_distance > 2.0:
        return dict(TYPICAL_SECONDS), False
    seconds = {step: max(best.step_seconds.get(step, 0.0), 0.01) for step in STEPS}
    scale = (size.samples + 1) / (best.size.samples + 1)
    seconds["calibrate"] *= scale
    return seconds, True


@dataclass
class ProgressTracker:
    """Turns lines into progress."""

    expected: Mapping[str, float] = field(default_factory=lambda: dict(TYPICAL_SECONDS))
    """Expected seconds per step."""
    known: bool = False
    """True when ``expected`` comes from a comparable run, so that a remaining time may be shown."""
    step: str = "prepare"
    """Current step."""
    done: int = 0
    """Items done in this step, in the compiler percent of the subgraph; 0 when not counted."""
    total: int = 0
    """Items in this step, in the compiler 100; 0 when not counted."""
    submodels: int = 0
    """BPU subgraphs the compiler has begun."""
    within: float = 0.0
    """Share of the current step that is done, where it is counted."""
    step_started: float = 0.0
    """Clock when the current step began, seconds."""
    reached: float = 0.0
    """Largest fraction shown so far."""

    def feed(self, text: str, now: float) -> bool:
        """Take one cleaned line at clock ``now`` (seconds); True when something changed."""
        if match := START.match(text):
            self._enter(STEP_OF_WORD[match[1]], now)
            return True
        if match := BAR.search(text):
            done, total = int(match[1]), int(match[2])
            changed = (done, total) != (self.done, self.total)
            self.done, self.total = done, total
            self.within = done / total if total else 0.0
            return changed
        if SUBMODEL.match(text):
            self.submodels += 1
            self.done, self.total, self.within = 0, 100, 0.0
            return True
        if self.step == "compile" and "%" in text and (match := PERCENT.search(text)):
            self.done, self.total = min(int(match[1]), 100), 100
            changed = self.done / 100 != self.within
            self.within = self.done / 100
            return changed
        if CLOSING.match(text) and self.step != "finish":
            self._enter("finish", now)
            return True
        return False

    def _enter(self, step: str, now: float) -> None:
        self.step, self.done, self.total, self.within, self.step_started = step, 0, 0, 0.0, now

    def fraction(self, now: float) -> float:
        """Share of the whole run that is done, 0 to 0.99; never goes back."""
        self.reached = max(self.reached, self._fraction(now))
        return self.reached

    def _fraction(self, now: float) -> float:
        total = sum(self.expected.get(s, 0.0) for s in STEPS)
        before = sum(self.expected.get(s, 0.0) for s in STEPS[: STEPS.index(self.step)])
        here = self.expected.get(self.step, 0.0)
        by_time = (now - self.step_started) / here if here else 0.0
        share = max(self.within, min(by_time, 0.95))
        return min((before + share * here) / total, 0.99) if total else 0.0

    def remaining_s(self, now: float) -> float | None:
        """Expected seconds until the end; None when nothing comparable has run before."""
        if not self.known:
            return None
        after = sum(self.expected.get(s, 0.0) for s in STEPS[STEPS.index(self.step) + 1 :])
        here, spent = self.expected.get(self.step, 0.0), now - self.step_started
        learned = max(here - spent, 0.0)
        if self.within <= 0:
            return after + learned
        counted = spent * (1 - self.within) / self.within
        # The compiler's own percentage is rough at its beginning (6 % after a third of the time) and right at its end,
        # so it counts by as much as is done. Samples calibrated are even work.
        trust = self.within if self.step == "compile" else 1.0
        return after + trust * counted + (1 - trust) * learned
