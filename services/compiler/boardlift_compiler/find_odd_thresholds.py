"""Find what the tool says of its own calibration: thresholds that are none, cosines that are no number; pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_log import LogFacts
from boardlift_compiler.parse_tables import NodeRow


def find_odd_thresholds(facts: LogFacts, inputs: Collection[str]) -> list[Finding]:
    """Return a finding per cosine that is no number and per threshold that the tool itself finds odd.

    Args:
        facts: What the log says.
        inputs: Names of the model's inputs: an illegal threshold there is an error.
    """
    found = []
    bad: Sequence[NodeRow] = [r for r in facts.nodes if r.cosine is not None and math.isnan(r.cosine)]
    if bad or any(math.isnan(o.cosine) for o in facts.outputs):
        where = bad[0].node if bad else facts.outputs[0].output
        found.append(
            Finding(
                "COSINE_NAN",
                "error",
                f"The tool's own cosine is NaN, first at {where}.",
                where,
                "Weights or constants overflow, or the samples are degenerate.",
            )
        )
    for text in facts.warnings:
        if "illegal threshold" in text or "inf threshold" in text:
            tensor = _first_word_after(text, "threshold in ")
            severity = "error" if tensor.removesuffix("_HzCalibration") in inputs else "warning"
            advice = "Its values are all zero, NaN or Inf on the calibration samples."
            found.append(Finding("THRESHOLD_ILLEGAL", severity, text[:300], tensor, advice))
        elif "got unexpected" in text and "threshold" in text:
            found.append(
                Finding(
                    "THRESHOLD_UNEXPECTED",
                    "warning",
                    text[:300],
                    _first_word_after(text, "conv ").rstrip("!"),
                    "Check preprocessing and weights.",
                )
            )
    return found


def _first_word_after(text: str, marker: str) -> str:
    rest = text.partition(marker)[2].split()
    return rest[0].rstrip(",") if rest else ""
