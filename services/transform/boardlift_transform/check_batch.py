"""Does a model compute the same eight samples at once as one by one? The vendor's calibrator tries eight at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from boardlift_transform.check_result import Finding
from boardlift_transform.edit_graph import Array
from boardlift_transform.equivalence import Session
from boardlift_transform.io_map import INPUT, IoEntry, feed_new
from boardlift_transform.refusal import Refusal

BATCH = 8
MAX_BYTES = 1 << 28
"""Size of a model above which it is not tried, as the copy costs its memory once more."""
PROVEN, LITERAL, WRONG, UNCHECKED = "proven", "literal", "wrong", "unchecked"


def check_batch(
    model: onnx.ModelProto,
    entries: Sequence[IoEntry],
    feeds: Sequence[Mapping[str, Array]],
    results: Sequence[Mapping[str, Array]],
) -> tuple[str, list[Finding]]:
    """Run the result with batch 8 and compare with eight runs at batch 1: what the vendor's calibrator will do.

    Args:
        model: The result.
        entries: How its tensors belong to the original's.
        feeds: Samples of the original's inputs; fewer than eight are repeated.
        results: Outputs of the result on each of them, run one by one.

    Returns:
        PROVEN, LITERAL, WRONG or UNCHECKED, and what is to be said of it.
    """
    size = model.ByteSize()
    if size > MAX_BYTES:
        return UNCHECKED, [_not_tried(size)]
    wide = [e.after for e in entries if e.direction == INPUT and e.after is not None]
    if any(spec.shape[:1] != (1,) for spec in wide):
        return LITERAL, []
    singles = [feed_new(entries, feeds[i % len(feeds)]) for i in range(BATCH)]
    batch_feed = {spec.name: np.concatenate([s[spec.name] for s in singles]) for spec in wide}
    free = _free_batch_copy(model)
    try:
        together = Session(free).run(batch_feed)
    except Refusal as refusal:
        return LITERAL, [Finding("BATCH_LITERAL", f"batch {BATCH} does not run: {refusal.message[:200]}", "graph")]
    scales = {name: _largest([result[name] for result in results]) for name in results[0]}
    for index in range(BATCH):
        for name, want in results[index % len(results)].items():
            got = together[name]
            if got.shape == want.shape and _same(got, want, scales[name]):
                continue  # an output that no input reaches
            if got.shape[:1] != (BATCH,) or not _same(got[index : index + 1], want, scales[name]):
                text = f"batch {BATCH} runs but output {name} differs from single runs"
                return WRONG, [Finding("BATCH_WRONG", text, name, "error", "calibrate with batch 1")]
    return PROVEN, []


def _not_tried(size_bytes: int) -> Finding:
    text = (
        f"batch {BATCH} was not tried: the model has {size_bytes >> 20} MiB, more than {MAX_BYTES >> 20};"
        " the calibrator may fall back to single samples"
    )
    return Finding("BATCH_UNCHECKED", text, "graph", "note", "look for CALIBRATION_BATCH_FALLBACK after the compile")


def _largest(arrays: Sequence[Array]) -> float:
    """The largest finite magnitude."""
    return max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays)


def _same(got: Array, want: Array, scale: float) -> bool:
    """Equal but for rounding, which goes with the output's magnitude; NaN equals NaN, as in the comparison above."""
    return bool(np.allclose(got, want, rtol=1e-3, atol=1e-4 * scale, equal_nan=True))


def _free_batch_copy(model: onnx.ModelProto) -> bytes:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for value in copy.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "boardlift_batch"
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    return copy.SerializeToString()
