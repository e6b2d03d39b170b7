"""Gates and what became of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from boardlift.errors import InvalidInputError
from boardlift.models.figure import Figure

_GATE = re.compile(
    r"(?P<metric>[a-z][a-z0-9_]*)(@(?P<output>[^<>=]+))?((?P<sign>>=|<=)(?P<limit>[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?))?"
)


@dataclass(frozen=True)
class Gate:
    """A limit on one figure; parse texts such as `cosine>=0.99` with `Gate.parse`."""

    metric: str
    """What is limited."""
    minimum: float | None = None
    """The figure must be at least this."""
    maximum: float | None = None
    """The figure must be at most this."""
    output: str = ""
    """Output it is about; empty means each."""

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Parse `metric>=number`, `metric<=number` or `metric@output>=number`; a bare metric means at least 1.

        Raises:
            InvalidInputError: The text is something else (`GATE_INVALID`).
        """
        match = _GATE.fullmatch(text.replace(" ", ""))
        if not match:
            raise InvalidInputError(
                f"{text!r} is not a gate.",
                reason="GATE_INVALID",
                remedy="Write metric>=number or metric<=number, for example cosine>=0.99 or max_abs@actions<=0.2.",
                metadata={"gate": text},
            )
        limit = float(match["limit"]) if match["limit"] else 1.0
        lower = match["sign"] != "<="
        return cls(match["metric"], limit if lower else None, None if lower else limit, match["output"] or "")

    def __str__(self) -> str:
        name = f"{self.metric}@{self.output}" if self.output else self.metric
        limits = (("≥", self.minimum), ("≤", self.maximum))
        return ", ".join(f"{name} {sign} {limit:.15g}" for sign, limit in limits if limit is not None) or name


@dataclass(frozen=True)
class GateResult:
    """One gate, judged."""

    gate: Gate
    """The gate."""
    outcome: str
    """"pass", "fail" or "undecided"."""
    figure: Figure | None = None
    """The figure it was judged by."""
    reason: str = ""
    """Why, in words."""
    subject: str = ""
    """Where the figure came from."""


@dataclass(frozen=True)
class VariantVerdict:
    """Outcome of one variant."""

    variant: str
    """Its name."""
    outcome: str
    """"pass", "fail" or "undecided"."""
    gates: tuple[GateResult, ...] = ()
    """Gate by gate."""
    figures: tuple[Figure, ...] = ()
    """Figures that decided."""
    reasons: tuple[str, ...] = ()
    """Why, in words."""


@dataclass(frozen=True)
class Verdict:
    """What a team can act on."""

    outcome: str
    """"pass", "fail" or "undecided"."""
    reasons: tuple[str, ...] = ()
    """Why, the most important first."""
    best_variant: str = ""
    """Best variant by the job's goal; empty when none passes."""
    variants: tuple[VariantVerdict, ...] = ()
    """Outcome per variant."""
    next_steps: tuple[str, ...] = ()
    """What to try next."""

    @property
    def passed(self) -> bool:
        """True when every gate of some variant held and the job passed."""
        return self.outcome == "pass"
