"""Drawing calibration and held-out samples: seeded, disjoint, copies never on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boardlift_transform.check_result import Finding
from boardlift_transform.refusal import Refusal

CALIBRATION_DEFAULT = 64
HELDOUT_LIMIT = 256
SMALLEST_HELDOUT_SHARE = 5


@dataclass(frozen=True)
class Split:
    """Sample indices of the two sides, in the order of the dataset."""

    calibration: tuple[int, ...]
    """For the vendor's calibrator."""
    heldout: tuple[int, ...]
    """For every proof and gate."""
    findings: tuple[Finding, ...] = ()
    """Things worth knowing."""


def split_samples(
    keys: Sequence[bytes], calibration: int = 0, heldout: int = 0, seed: int = 0, made: tuple[int, int] | None = None
) -> Split:
    """Split samples.

    Args:
        keys: One key per sample; equal keys are equal samples.
        calibration: Wanted calibration samples; 0 means 64.
        heldout: Wanted held-out samples; 0 means the rest up to 256.
        seed: Of the draw.
        made: (calibration, held-out) counts when the dataset was split by its maker: the first C, then the next H. This
            split is kept, only shortened.

    Raises:
        Refusal: More samples were asked for than there are (`TOO_FEW_SAMPLES`); defaults take what there is.
    """
    wanted = calibration or CALIBRATION_DEFAULT
    limit = heldout or HELDOUT_LIMIT
    if made is not None and min(made) > 0:
        first, second = made
        if calibration > first or heldout > second:
            raise _too_few(calibration, heldout, f"the dataset was split into {first} + {second} when it was made")
        chosen = tuple(range(first))[:wanted], tuple(range(first, first + second))[:limit]
        shared = {keys[i] for i in chosen[0]} & {keys[i] for i in chosen[1]}
        return Split(*chosen, _leak(len(shared)) if shared else ())
    groups: dict[bytes, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    unique = [members[0] for members in groups.values()]
    if len(unique) == 1:
        text = "there is one distinct sample: it calibrates and judges, so the proof says little"
        return Split((unique[0],), (unique[0],), (Finding("HELDOUT_OVERLAP", text, "dataset", "error", "add samples"),))
    if (calibration or 1) + (heldout or 1) > len(unique):
        raise _too_few(calibration, heldout, f"there are {len(unique)} different ones")
    order = np.random.default_rng(seed).permutation(len(unique))
    reserve = heldout or min(limit, max(1, len(unique) // SMALLEST_HELDOUT_SHARE))
    taken = calibration or min(wanted, len(unique) - reserve)
    left = [unique[i] for i in order[:taken]]
    right = [unique[i] for i in order[taken : taken + limit]]
    findings: tuple[Finding, ...] = ()
    if taken < wanted:
        text = f"{taken} samples calibrate instead of {wanted}, so that {len(right)} are left for the proof"
        findings = (Finding("CALIBRATION_SHORT", text, "dataset", "note", "add samples"),)
    return Split(tuple(sorted(left)), tuple(sorted(right)), findings)


def _too_few(calibration: int, heldout: int, there: str) -> Refusal:
    sides = [f"{count} {what}" for count, what in ((calibration, "to calibrate"), (heldout, "held out")) if count]
    return Refusal(
        "TOO_FEW_SAMPLES",
        f"samples were asked for, {' and '.join(sides)}, but {there}",
        remedy="ask for fewer, or make the dataset anew from more samples",
        metadata={"calibration": calibration, "heldout": heldout},
    )


def _leak(count: int) -> tuple[Finding, ...]:
    text = f"{count} held-out samples are copies of calibration samples"
    return (Finding("HELDOUT_OVERLAP", text, "dataset", "warning", "split by recording, not by frame"),)
