"""The time left of a wait."""

from __future__ import annotations

import time


class Deadline:
    """Counts from now; None never ends."""

    def __init__(self, timeout_s: float | None) -> None:
        """End in `timeout_s` seconds."""
        self._end = None if timeout_s is None else time.monotonic() + timeout_s

    def remaining_s(self) -> float | None:
        """Seconds left, never less than a millisecond, so that a call made with it fails by deadline."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.001)
