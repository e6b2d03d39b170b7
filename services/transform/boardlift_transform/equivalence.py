"""Original against transformed model, in float, on the same samples, by stock onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort

from boardlift_transform.edit_graph import Array
from boardlift_transform.io_map import IoEntry, feed_new, old_outputs
from boardlift_transform.refusal import Refusal

ROUNDING_TOLERANCE = 5e-5
HALF_TOLERANCE = 1e-2
EXACT_TOLERANCE = 1e-6
THREADS = 2


@dataclass(frozen=True)
class OutputComparison:
    """Errors of one output over all samples; every figure is measured."""

    output: str
    """Output name."""
    samples: int
    """Samples compared."""
    max_abs: float
    """Largest absolute difference."""
    mean_abs: float
    """Mean absolute difference."""
    max_rel: float
    """Largest difference relative to the reference's largest magnitude."""
    cosine: float
    """Cosine similarity over all samples; 1 for two zero vectors."""
    tolerance: float
    """Allowed `max_abs`."""
    worst_sample: int
    """Index of the sample with the largest difference."""

    @property
    def passed(self) -> bool:
        """True when the difference is within the tolerance (NaN never is)."""
        return self.max_abs <= self.tolerance


class Session:
    """A float model in stock onnxruntime."""

    def __init__(self, model: bytes | str, outputs: Sequence[str] | None = None) -> None:
        """Load from bytes or a path.

        Raises:
            Refusal: MODEL_DOES_NOT_RUN.
        """
        options = ort.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the core
        options.log_severity_level = 4
        try:
            self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _does_not_run(error) from error
        self.outputs = list(outputs or [o.name for o in self._session.get_outputs()])
        self._inputs = {i.name for i in self._session.get_inputs()}

    def run(self, feeds: Mapping[str, Array], names: Sequence[str] = ()) -> dict[str, Array]:
        """Outputs by name; all, or those named."""
        wanted = list(names) or self.outputs
        try:
            results = self._session.run(wanted, {k: v for k, v in feeds.items() if k in self._inputs})
        except Exception as error:
            raise _does_not_run(error) from error
        return {name: np.asarray(r) for name, r in zip(wanted, results, strict=False)}


def _does_not_run(error: Exception) -> Refusal:
    text = str(error).strip().splitlines() or [type(error).__name__]
    return Refusal(
        "MODEL_DOES_NOT_RUN",
        f"onnxruntime does not run it: {text[0][:400]}",
        remedy="check that the model runs in onnxruntime as it is",
    )


def run_reference(
    model: bytes | str, outputs: Sequence[str], samples: Sequence[Mapping[str, Array]]
) -> list[dict[str, Array]]:
    """Outputs of the original model, one dict per sample."""
    session = Session(model, outputs)
    return [session.run(sample) for sample in samples]


def compare(
    reference: Sequence[Mapping[str, Array]],
    model: bytes | str,
    entries: Sequence[IoEntry],
    samples: Sequence[Mapping[str, Array]],
    relative_tolerance: float,
) -> list[OutputComparison]:
    """Run the transformed model on the same samples and compare each output."""
    made = [old_outputs(entries, result) for result in run_result(model, entries, samples)]
    return compare_results(reference, made, relative_tolerance)


def run_result(
    model: bytes | str, entries: Sequence[IoEntry], samples: Sequence[Mapping[str, Array]]
) -> list[dict[str, Array]]:
    """Outputs of the transformed model as it names and shapes them, one dict per sample of the original's inputs."""
    session = Session(model)
    return [session.run(feed_new(entries, sample)) for sample in samples]


def compare_results(
    reference: Sequence[Mapping[str, Array]], made: Sequence[Mapping[str, Array]], relative_tolerance: float
) -> list[OutputComparison]:
    """Compare each output; both as the original names and shapes them, one dict per sample."""
    return [
        compare_output(name, [r[name] for r in reference], [r[name] for r in made], relative_tolerance)
        for name in (reference[0] if reference else ())
    ]


def compare_output(name: str, want: list[Array], got: list[Array], relative_tolerance: float) -> OutputComparison:
    """Errors of one output, `want` and `got` per sample."""
    expected = np.stack([w.astype(np.float64).reshape(-1) for w in want])
    actual = np.stack([g.astype(np.float64).reshape(-1) for g in got])
    difference = absolute_difference(expected, actual)
    finite = expected[np.isfinite(expected)]
    scale = float(np.max(np.abs(finite), initial=0.0))
    max_abs = float(difference.max(initial=0.0))
    whole = not np.issubdtype(want[0].dtype, np.floating)
    return OutputComparison(
        output=name,
        samples=len(want),
        max_abs=max_abs,
        mean_abs=float(difference.mean()) if difference.size else 0.0,
        max_rel=max_abs / scale if scale else max_abs,
        cosine=_cosine(expected, actual),
        tolerance=0.0 if whole else relative_tolerance * max(scale, 1e-3),
        worst_sample=int(difference.max(axis=1).argmax()) if difference.size else 0,
    )


def absolute_difference(expected: Array, actual: Array) -> Array:
    """Element by element, float64; 0 where both are the same infinity or no number, infinite where only one is."""
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(expected - actual))
    return np.where(np.isnan(difference), np.inf, difference)


def _cosine(left: Array, right: Array) -> float:
    mask = np.isfinite(left) & np.isfinite(right)
    a, b = left[mask], right[mask]
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    if norm == 0.0:
        return 1.0 if float(np.linalg.norm(a - b)) == 0.0 else 0.0
    return float(min(1.0, np.dot(a, b) / norm))
