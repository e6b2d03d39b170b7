"""Say when a build was asked without calibration, so that nobody takes it for one with; pure."""

from __future__ import annotations

from collections.abc import Iterable

from boardlift_compiler.detect_fallbacks import PREPROCESS
from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_tables import NodeRow
from boardlift_compiler.spec import CompileSpec


def find_uncalibrated(spec: CompileSpec, rows: Iterable[NodeRow]) -> list[Finding]:
    """Return NOT_CALIBRATED for the methods ``skip`` and, on a model without thresholds of its own, ``load``.

    Measured: ``skip`` makes thresholds up and leaves out all HzRequantize rows, so its latency is no prediction either;
    ``load`` takes the thresholds of a model trained quantised, and 1.0 everywhere from any other, without a word.

    Args:
        spec: The completed spec.
        rows: The node table.
    """
    if spec.calibration.method == "skip":
        text = "Calibration was left out: thresholds are made up, and latency leaves out every requantisation."
        return [Finding("NOT_CALIBRATED", "warning", text, "skip", "Calibrate with samples for anything but a trial.")]
    if spec.calibration.method != "load":
        return []
    thresholds = {r.threshold for r in rows if r.threshold and not r.node.startswith(PREPROCESS)}
    if thresholds - {"1.0"}:
        return []
    text = "The model brings no thresholds of its own: the tool took 1.0 for every node."
    return [Finding("NOT_CALIBRATED", "error", text, "load", "Calibrate with samples; load is for models trained so.")]
