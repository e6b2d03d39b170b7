"""When to try a call again: only UNAVAILABLE, only calls that may be repeated, with growing, jittered pauses.

Sans-IO: `Retry` says how long to sleep; the sync and async clients sleep.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from boardlift.errors import BoardliftError, UnavailableError

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 3.0
SILENCE_S = 0.5
"""An outage this long is told."""
PATIENCE_S = 20.0
"""A restarting server or an election of the queue takes up to about 15 s."""


class Retry:
    """The pauses of one call."""

    def __init__(
        self,
        patience_s: float = PATIENCE_S,
        *,
        clock: Callable[[], float] = time.monotonic,
        seed: int | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        """Give up when `patience_s` have passed since the first failure in a row; tell `on_wait` of an outage once."""
        self._patience_s = patience_s
        self._on_wait = on_wait
        self._clock = clock
        self._random = random.Random(seed)  # noqa: S311  (jitter, not a secret)
        self._first_failure: float | None = None
        self._pause_s = FIRST_PAUSE_S

    @property
    def repeated(self) -> bool:
        """True when a try has failed since something came through: it may have had its effect all the same."""
        return self._first_failure is not None

    def succeeded(self) -> None:
        """Start anew: something came through."""
        self._first_failure, self._pause_s = None, FIRST_PAUSE_S

    def pause_s(self, error: BoardliftError) -> float:
        """Return how long to sleep before the next try, or raise the error when there is none."""
        now = self._clock()
        if self._first_failure is None:
            self._first_failure = now
        if not isinstance(error, UnavailableError) or now - self._first_failure >= self._patience_s:
            raise error
        if self._on_wait and now - self._first_failure >= SILENCE_S:
            self._on_wait()
            self._on_wait = None
        pause_s = self._pause_s * self._random.uniform(0.5, 1.0)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return pause_s
