"""What a fake server plays: how long stages take, what they find, where they fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SOURCE = "boardlift.testing"


@dataclass(frozen=True)
class StageScript:
    """How one stage goes."""

    steps: tuple[str, ...] = ("work",)
    """Steps it reports."""
    lines: tuple[str, ...] = ()
    """Lines its tool prints."""
    failure_code: str = ""
    """Set makes it fail with this code."""
    failure_message: str = "The stage said no."
    """Message of the failure."""
    user_fault: bool = True
    """Whether the input is at fault."""
    cached: bool = False
    """Say that a stored result was used."""


@dataclass(frozen=True)
class Scenario:
    """What becomes of every job."""

    step_s: float = 0.0
    """Time each step takes."""
    stages: Mapping[str, StageScript] = field(default_factory=dict)
    """Stage, or "stage/variant" -> how it goes; others succeed in one step."""
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Variant -> metric -> value; others take `default_figures`."""
    default_figures: Mapping[str, float] = field(
        default_factory=lambda: {"cosine": 0.9995, "max_abs": 0.02, "estimated_latency_us": 123.4, "bit_exact": 1.0}
    )
    """Metric -> value of variants without figures of their own."""

    def script(self, stage: str, variant: str) -> StageScript:
        """Return how a stage goes."""
        return self.stages.get(f"{stage}/{variant}") or self.stages.get(stage) or StageScript()

    def value(self, variant: str, metric: str) -> float | None:
        """Return a variant's figure."""
        return self.figures.get(variant, self.default_figures).get(metric)
