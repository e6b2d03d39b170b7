"""GridSample at constant places: the matrix that takes an image to its samples.

Before -> after: `GridSample(x, constant grid)` -> `MatMul(x as [N, C, H W], [H W, places])`. Every sample is a sum of
pixels with constant weights, so the weights of all corners, of padding and of reflection stand in one matrix.
Why: corner by corner it is four GatherElements, whose compiled code dies in the vendor's simulator, or stops its
compiler.
Exactness: float rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from boardlift_transform.edit_graph import Array

MOST_ELEMENTS = 1 << 20
"""Of the matrix: 4 MB; above it the corners are gathered one by one."""
CUBIC = -0.75


def sampling_matrix(grid: Array, sizes: Sequence[int], mode: str, padding: str, align: bool) -> Array | None:
    """Return the matrix, or None where it would be too large.

    Args:
        grid: float `[places, axes]` in -1..1, the innermost axis first.
        sizes: Spatial sizes, outermost first.
        mode: linear, cubic or nearest.
        padding: zeros, border or reflection.
        align: Whether -1 and 1 are the centres of the outermost pixels.

    Returns:
        float64 `[product of sizes, places]`.
    """
    places, area = len(grid), int(np.prod(sizes))
    if places * area > MOST_ELEMENTS:
        return None
    where = [_position(grid[:, -1 - k].astype(np.float32), n, align) for k, n in enumerate(sizes)]
    if padding != "zeros" and mode != "cubic":  # cubic moves its taps instead
        where = [_inside(w, n, padding, align) for w, n in zip(where, sizes, strict=True)]
    taps = [_taps(w, mode) for w in where]
    matrix, columns = np.zeros((area, places)), np.arange(places)
    for corner in product(range(len(taps[0])), repeat=len(sizes)):
        row, share, good = np.zeros(places, np.int64), np.ones(places), np.ones(places, bool)
        for axis, k in enumerate(corner):
            at, weight = taps[axis][k]
            if mode == "cubic" and padding != "zeros":
                at = _inside(at, sizes[axis], padding, align)
            good &= (at > -0.5) & (at < sizes[axis] - 0.5)
            row = row * sizes[axis] + np.clip(np.rint(at), 0, sizes[axis] - 1).astype(np.int64)
            share = share * weight
        np.add.at(matrix, (row, columns), np.where(good, share, 0.0))
    return matrix


def _position(value: Array, size: int, align: bool) -> Array:
    """From -1..1 to pixels, in float32 as runtimes count: half a pixel is rounded where they round it."""
    one, half, n = np.float32(1), np.float32(0.5), np.float32(size)
    return np.asarray((value + one) * half * (n - one) if align else ((value + one) * n - one) * half)


def _inside(where: Array, size: int, padding: str, align: bool) -> Array:
    if padding == "reflection":
        half, span = (0.0, size - 1.0) if align else (0.5, float(size))
        span = max(span, 1e-6)
        away = np.abs(where + half)
        turns = np.floor(away / span)
        rest = away - turns * span
        where = np.where(turns % 2 == 1, span - rest, rest) - half
    return np.clip(where, 0, size - 1)


def _taps(where: Array, mode: str) -> list[tuple[Array, Array]]:
    """Whole places around each position and their weights."""
    if mode == "nearest":
        return [(np.rint(where), np.ones_like(where))]
    where = where.astype(np.float64)
    base = np.floor(where)
    part = where - base
    if mode == "linear":
        return [(base, 1 - part), (base + 1, part)]
    a = CUBIC
    rows = [(a, -2 * a, a, 0.0), (a + 2, -(a + 3), 0.0, 1.0), (-(a + 2), 2 * a + 3, -a, 0.0), (-a, a, 0.0, 0.0)]
    return [(base + k - 1, np.polyval(row, part)) for k, row in enumerate(rows)]
