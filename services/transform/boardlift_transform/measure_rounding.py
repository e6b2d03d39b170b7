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
from boardlift_transform.equivalence import OutputComparison, Session, absolute_difference

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
    doubtful = {c.output: c.tolerance for c in comparisons if not c.passed}
    beyond = _count_beyond(doubtful, original.outputs, made)
    moved, shaken = _spread(original, doubtful)
    found, findings = [], []
    for comparison in comparisons:
        name = comparison.output
        if comparison.passed:
            found.append(comparison)
            continue
        whole = not np.issubdtype(original.outputs[0][name].dtype, np.floating)
        allowed = comparison.max_abs if whole else FACTOR * moved[name]
        # One element that a comparison decides says nothing of the others: as many may be off as the shaking moves.
        if beyond[name] > FACTOR * shaken[name] or not comparison.max_abs <= allowed < np.inf:
            found.append(comparison)
            continue
        found.append(replace(comparison, tolerance=allowed))
        what = f"{shaken[name]} elements" if whole else f"it by {moved[name]:.3g}"
        here = f"{beyond[name]} elements differ" if whole else f"it differs by {comparison.max_abs:.3g}"
        text = (
            f"Output {name} is decided by rounding: one unit in the last place of the weights moves {what};"
            f" {here}, where {comparison.tolerance:.3g} is allowed elsewhere."
        )
        advice = "Judge the variants by the task, not by it."
        findings.append(Finding("ROUNDING_AMPLIFIED", text, name, "warning", advice))
    return found, findings


def _count_beyond(
    limits: Mapping[str, float], reference: Sequence[Mapping[str, Array]], made: Sequence[Mapping[str, Array]]
) -> dict[str, int]:
    """Return how many elements of each output are off by more than its limit, over all samples."""
    pairs = list(zip(reference, made, strict=True))
    return {n: sum(int((_gap(r[n], m[n]) > limit).sum()) for r, m in pairs) for n, limit in limits.items()}


def _gap(want: Array, got: Array) -> Array:
    return absolute_difference(want.astype(np.float64).reshape(-1), got.astype(np.float64).reshape(-1))


def _spread(original: Original, limits: Mapping[str, float]) -> tuple[dict[str, float], dict[str, int]]:
    """Largest finite move per output, and the most elements that move by a limit's share of `FACTOR` in one trial."""
    names = list(limits)
    moved, shaken = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    shares = {name: limit / FACTOR for name, limit in limits.items()}
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        session = original.open_model(_shaken(original.proto, rng), names)
        feeds = [{n: _shake(a, rng) for n, a in feed.items()} for feed in original.feeds]
        made = [session.run(feed, names) for feed in feeds]
        for name, count in _count_beyond(shares, original.outputs, made).items():
            shaken[name] = max(shaken[name], count)
            for want, got in zip(original.outputs, made, strict=True):
                gap = _gap(want[name], got[name])
                moved[name] = max(moved[name], float(np.max(gap[np.isfinite(gap)], initial=0.0)))
    return moved, shaken


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
