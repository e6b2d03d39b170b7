"""Sample sets of a search: part of a set as an artifact of its own, and proof that two sets are disjoint."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


def count_samples(samples: Mapping[str, Array]) -> int:
    """Return the number of samples; 0 when there is no input or inputs disagree."""
    counts = {len(a) if a.ndim else 0 for a in samples.values()}
    return counts.pop() if len(counts) == 1 else 0


def sample_digests(samples: Mapping[str, Array]) -> list[str]:
    """Return one digest per sample over all inputs, whatever their element type and unit dimensions."""
    names = sorted(samples)
    digests = []
    for index in range(count_samples(samples)):
        digest = hashlib.sha256()
        for name in names:
            digest.update(name.encode() + b"\0")
            digest.update(np.ascontiguousarray(samples[name][index], dtype=np.float32).tobytes())
        digests.append(digest.hexdigest())
    return digests


def overlapping(calibration: Mapping[str, Array], heldout: Mapping[str, Array]) -> list[int]:
    """Return the numbers of held-out samples that are also calibration samples."""
    used = set(sample_digests(calibration))
    return [index for index, digest in enumerate(sample_digests(heldout)) if digest in used]


def spread(count: int, wanted: int) -> list[int]:
    """Return `wanted` sample numbers spread evenly over `count`, so that a part of a recording is not all of a set."""
    if wanted >= count:
        return list(range(count))
    return [int((i + 0.5) * count / wanted) for i in range(wanted)]


def pack_samples(samples: Mapping[str, Array], numbers: list[int]) -> bytes:
    """Return the named samples as an ``.npz``; equal samples give equal bytes."""
    out = io.BytesIO()
    arrays = {name: np.ascontiguousarray(samples[name][numbers]) for name in sorted(samples)}
    np.savez(out, **arrays)  # type: ignore[arg-type]  # numpy's stub types savez's flags only
    return out.getvalue()
