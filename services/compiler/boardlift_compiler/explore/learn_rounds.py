"""Learn from past rounds of searches how long one really takes on this machine.

A round is more than the tool's own steps: its imports, the samples, the store, and whoever else uses the cores. What
rounds took against the plain sum of their steps is kept per kind of work, and the median of the last ones corrects the
next prediction.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path

from boardlift_compiler.keep_text import keep_text

MOST = 9
"""Rounds of a kind that count."""
LEAST_FACTOR, MOST_FACTOR = 0.2, 20.0


class RoundTimes:
    """Ratios of what rounds took to what was reckoned, in a file. Losing it costs nothing but a guess."""

    def __init__(self, path: Path) -> None:
        """Use `path`; what cannot be read there is ignored."""
        self._path = path

    def add(self, kind: str, reckoned_s: float, took_s: float) -> None:
        """Remember a round of a kind; one without work says nothing."""
        if reckoned_s <= 0.0 or took_s <= 0.0:
            return
        ratios = {**self._read()}
        ratios[kind] = [*ratios.get(kind, []), round(took_s / reckoned_s, 4)][-MOST:]
        keep_text(self._path, json.dumps(ratios))

    def factor(self, kind: str) -> float:
        """Return what to multiply a reckoned time with; 1 when nothing is known."""
        ratios = self._read().get(kind)
        return min(max(statistics.median(ratios), LEAST_FACTOR), MOST_FACTOR) if ratios else 1.0

    def _read(self) -> Mapping[str, list[float]]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(kind): [float(r) for r in ratios] for kind, ratios in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
