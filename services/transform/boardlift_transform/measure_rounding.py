"""Measure how far a model's own float rounding moves its outputs: what a proof cannot ask less than.

Where a model subtracts what is nearly equal, divides by a small deviation or decides by a comparison, the last bit of a
weight moves its outputs by more than a tolerance relative to their size; a rewrite that is right moves them as much.
Weights and inputs are changed by at most one unit in the last place, at random, and the model is run again (measured).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import numpy_helper

from boardlift_transform.check_result import Finding
from boardlift_transform.edit_graph import Array
from boardlift_transform.equivalence import OutputComparison, Session

SIZED = frozenset({"Resize", "Upsample", "Range"})
"""Operators whose float parameters make a size: another last place would be another shape."""
TRIALS = 4
FACTOR = 4.0
"""A rewrite may move an output by so much more than one unit in the last place of every weight does."""


@dataclass(frozen=True)
class Original:
    """The user's model and what it gave."""

    proto: onnx.ModelProto
    """The model."""
    open_model: Callable[[onnx.ModelProto, Sequence[str]], Session]
    """Opens it with the named outputs."""
    feeds: Sequence[Mapping[str, Array]]
    """Samples of its inputs."""
    outputs: Sequence[Mapping[str, Array]]
    """Its outputs on them."""


def allow_rounding(
    comparisons: Sequence[OutputComparison], original: Original, made: Sequence[Mapping[str, Array]]
) -> tuple[list[OutputComparison], list[Finding]]:
    """Return the comparisons with what the model's own rounding allows, and a note per output that needed it.

    Args:
        comparisons: Of all outputs; one is beyond its tolerance.
        original: The user's model on the samples that were compared.
        made: The result's outputs on them.
    """
    reference = original.outputs
    names = [c.output for c in comparisons if not c.passed]
    changed = _count_changed(names, reference, made)
    moved, flipped = _spread(original, names)
    found, findings = [], []
    for comparison in comparisons:
        name = comparison.output
        if comparison.passed:
            found.append(comparison)
            continue
        whole = not np.issubdtype(reference[0][name].dtype, np.floating)
        allowed = FACTOR * moved[name]
        if whole:
            allowed = comparison.max_abs if changed[name] <= FACTOR * flipped[name] else 0.0
        if not comparison.max_abs <= allowed:
            found.append(comparison)
            continue
        found.append(replace(comparison, tolerance=allowed))
        what = f"{flipped[name]} elements" if whole else f"{moved[name]:.3g}"
        here = f"{changed[name]} elements differ" if whole else f"it differs by {comparison.max_abs:.3g}"
        text = (
            f"Output {name} is decided by rounding: one unit in the last place of the weights moves it by {what};"
            f" {here}, where {comparison.tolerance:.3g} is allowed elsewhere."
        )
        findings.append(Finding("ROUNDING_AMPLIFIED", text, name, remedy="Judge the variants by the task, not by it."))
    return found, findings


def _count_changed(
    names: Sequence[str], reference: Sequence[Mapping[str, Array]], made: Sequence[Mapping[str, Array]]
) -> dict[str, int]:
    """Return how many elements of each output differ, over all samples."""
    pairs = list(zip(reference, made, strict=True))
    return {n: sum(int((r[n].reshape(-1) != m[n].reshape(-1)).sum()) for r, m in pairs) for n in names}


def _spread(original: Original, names: Sequence[str]) -> tuple[dict[str, float], dict[str, int]]:
    """Largest move per output, and the most elements that differ in one trial."""
    moved, flipped = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        session = original.open_model(_shaken(original.proto, rng), names)
        feeds = [{n: _shake(a, rng) for n, a in feed.items()} for feed in original.feeds]
        made = [session.run(feed, names) for feed in feeds]
        for name, count in _count_changed(names, original.outputs, made).items():
            flipped[name] = max(flipped[name], count)
            for want, got in zip(original.outputs, made, strict=True):
                gap = np.abs(want[name].astype(np.float64) - got[name].astype(np.float64))
                moved[name] = max(moved[name], float(np.max(gap[np.isfinite(gap)], initial=0.0)))
    return moved, flipped


def _shaken(proto: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """A copy with other last places in its float32 weights."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    sizes = {name for node in proto.graph.node if node.op_type in SIZED for name in node.input}
    for tensor in copy.graph.initializer:
        if tensor.name in sizes:
            continue
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.data_location != onnx.TensorProto.EXTERNAL:
            tensor.CopyFrom(numpy_helper.from_array(_shake(numpy_helper.to_array(tensor), rng), tensor.name))
    return copy


def _shake(values: Array, rng: np.random.Generator) -> Array:
    """Move float32 values by -1, 0 or 1 units in the last place; zeros and what is no number stay."""
    if values.dtype != np.float32:
        return values
    step = rng.integers(-1, 2, values.shape)
    toward = np.where(step == 0, values, np.where(step < 0, -np.inf, np.inf))
    return np.where(np.isfinite(values) & (values != 0), np.nextafter(values, toward.astype(np.float32)), values)
