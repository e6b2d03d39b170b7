"""What a simulation shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from boardlift_compiler.compare_outputs import BitComparison, Comparison
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.findings import Finding


@dataclass
class SimulateOutcome:
    """What the simulation showed."""

    failure: StageFailure | None = None
    """Why there is none."""
    outputs: list[Comparison] = field(default_factory=list)
    """Quantised model against the float reference. Simulated."""
    bits: list[BitComparison] = field(default_factory=list)
    """Compiled code against quantised model. Simulated."""
    findings: list[Finding] = field(default_factory=list)
    """Things worth knowing."""
    quantized_outputs: Path | None = None
    """``.npz`` of the quantised model's outputs; lies in the run folder."""
    batched: bool = False
    """True when the samples ran in batches (proven equal on the first)."""

    @property
    def bit_exact(self) -> bool:
        """True when there was at least one bit check and all were equal."""
        return bool(self.bits) and all(b.equal for b in self.bits)
