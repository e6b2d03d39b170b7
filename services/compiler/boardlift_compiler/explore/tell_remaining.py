"""Tell how long an exploration will go on: what was predicted at first, what its own pace says later; pure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from boardlift_servicekit.executions import Emitter

TRUSTED = 0.05
"""Share of the work that must be done before its pace says anything without a prediction."""


@dataclass
class Pace:
    """Progress of one exploration with its remaining time."""

    emitter: Emitter
    """Where progress goes."""
    expected_s: float | None = None
    """Predicted seconds of the whole; None when nothing is known."""
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    started: float = field(init=False)
    """When it began."""

    def __post_init__(self) -> None:
        """Begin."""
        self.started = self.clock()

    def remaining_s(self, fraction: float) -> float | None:
        """Return the seconds that are left; None when there is no ground for a number.

        The further it is, the more the pace so far counts and the less the prediction.
        """
        if not 0.0 < fraction <= 1.0:
            return self.expected_s
        by_pace = (self.clock() - self.started) * (1.0 - fraction) / fraction
        if self.expected_s is None:
            return by_pace if fraction >= TRUSTED else None
        return fraction * by_pace + (1.0 - fraction) * self.expected_s * (1.0 - fraction)

    def __call__(self, step: str, fraction: float, done: int = 0, total: int = 0) -> None:
        """Report a step, with `fraction` of the whole done."""
        self.emitter.progress(step, fraction, done, total, self.remaining_s(fraction))
