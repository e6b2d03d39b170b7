"""The proof for a quantised model: what was stripped of its quantisation is another model, so there are two distances.

All other passes are proven against the float model inside, at the usual tolerance (`prove`). How far that float model
is from the user's own is measured here, and is the quantisation's own error: what is known of each stripped pair is
that it moves a value by half a step at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from boardlift_transform.check_result import Finding
from boardlift_transform.edit_graph import Array
from boardlift_transform.equivalence import OutputComparison, Session, compare_output, compare_results
from boardlift_transform.load_model import LoadedModel
from boardlift_transform.plan import STRIPPERS, PlannedPass
from boardlift_transform.prove import Proof, open_original
from boardlift_transform.refusal import Refusal
from boardlift_transform.runner import PassReport

LOWEST_COSINE = 0.9
"""Below this, what is inside is no longer the same model for any practical purpose; a wrong strip ends far below."""


@dataclass(frozen=True)
class FloatInside:
    """The float model that was found in a quantised one."""

    loaded: LoadedModel
    """The model after stripping, what `prove` compares with."""
    steps: int
    """How many steps of the plan made it."""
    pairs: int
    """Rewrites that took quantisation out."""


def steps_to_strip(steps: Sequence[PlannedPass]) -> int:
    """Number of leading steps up to the last one that strips quantisation; 0 when there is none."""
    return 1 + max((i for i, step in enumerate(steps) if step.id in STRIPPERS), default=-1)


def find_float(working: ir.Model, reports: Sequence[PassReport], loaded: LoadedModel) -> FloatInside | None:
    """The float model inside, when the steps so far stripped anything."""
    pairs = sum(len(r.applied) for r in reports if r.id in STRIPPERS)
    if not pairs:
        return None
    return FloatInside(LoadedModel(ir.to_proto(working), loaded.sha256), len(reports), pairs)


def measure_against_original(
    proof: Proof,
    inside: FloatInside,
    loaded: LoadedModel,
    feeds: Sequence[Mapping[str, Array]],
    original: Session | None,
    on_sample: Callable[[int], None] = lambda done: None,
) -> Proof:
    """Put the user's own model in the place of the reference, and allow as much as the quantisation itself costs.

    Raises:
        Refusal: QUANTISATION_TOO_COARSE when a float output of the two models has a cosine below 0.9.
    """
    names = list(proof.reference[0])
    if original is None or not set(names) <= set(original.outputs):
        original = open_original(loaded.proto, names)
    reference = []
    for feed in feeds:
        reference.append(original.run(feed, names))
        on_sample(len(reference))
    own = reference[: len(proof.results)]
    gaps = {n: compare_output(n, [r[n] for r in own], [r[n] for r in proof.reference], 0.0) for n in names}
    for name, gap in gaps.items():
        if np.issubdtype(own[0][name].dtype, np.floating) and gap.cosine < LOWEST_COSINE:
            raise _too_coarse(gap)
    rounding = {c.output: c.tolerance for c in proof.comparisons}
    found = compare_results(own, proof.results, 0.0)
    comparisons = [replace(c, tolerance=gaps[c.output].max_abs + 2 * rounding[c.output]) for c in found]
    findings = (*proof.findings, _finding(list(gaps.values()), inside))
    return replace(proof, reference=tuple(reference), comparisons=tuple(comparisons), findings=findings)


def _too_coarse(gap: OutputComparison) -> Refusal:
    return Refusal(
        "QUANTISATION_TOO_COARSE",
        f"output {gap.output}: the quantised model and the float model inside it have a cosine of {gap.cosine:.3f} only"
        f" (measured, {gap.samples} samples), so one cannot stand for the other",
        remedy="give the float model from before it was quantised: the toolchain calibrates and quantises by itself",
        metadata={"output": gap.output, "cosine": gap.cosine, "max_abs": gap.max_abs},
    )


def _finding(gaps: Sequence[OutputComparison], inside: FloatInside) -> Finding:
    worst = min(gaps, key=lambda g: g.cosine)
    return Finding(
        "QUANTISATION_REMOVED",
        f"the model was quantised already; {inside.pairs} places were taken back to float. Against your model, output"
        f" {worst.output} has a cosine of {worst.cosine:.6f} and differs by {worst.max_abs:.3g} at most (measured,"
        f" {worst.samples} samples)",
        worst.output,
        "note",
        "better: give the float model from before it was quantised, the toolchain quantises by itself",
    )
