"""Draw calibration and held-out windows from runs of consecutive frames, so that no frame is in both.

Neighbouring windows share frames, and frames close in time look alike: a held-out sample beside a calibration sample
proves nothing. So runs are cut into blocks of several windows, a block belongs to one split only, and a window is a
candidate only when it lies wholly inside its block. Pure: everything follows from the arguments.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from boardlift.errors import InvalidInputError


@dataclass(frozen=True)
class SplitRequest:
    """How many samples to draw."""

    calibration: int = 64
    """Samples that calibrate."""
    heldout: int = 256
    """Samples kept back for proof."""
    seed: int = 0
    """Seed of the draw."""


@dataclass(frozen=True)
class Window:
    """A window: `frames` consecutive frames of one run."""

    run: int
    """Index of the run."""
    start: int
    """First frame in the run."""


# A block of this many windows' frames; smaller when there is little data.
_BLOCK_WINDOWS = 8


def draw_windows(
    runs: Sequence[int], frames: int, request: SplitRequest, rejected: frozenset[Window] = frozenset()
) -> tuple[list[Window], list[Window]]:
    """Draw windows of `frames` frames from runs of the given lengths.

    Args:
        runs: Length of each run in frames.
        frames: Frames of one window.
        request: How many to draw, and the seed.
        rejected: Windows that may not be drawn, for example duplicates.

    Returns:
        Calibration and held-out windows, in time order; no frame is in both lists.

    Raises:
        InvalidInputError: There are too few windows (`TOO_FEW_STEPS`).
    """
    best = (0, 0)
    for size in (_BLOCK_WINDOWS * frames, 4 * frames, 2 * frames, frames):
        rng = random.Random(request.seed)  # noqa: S311  (a draw of samples, not a secret)
        blocks = _cut_blocks(runs, frames, size, rejected)
        pools = _assign_blocks(blocks, request, rng)
        best = max(best, (len(pools[0]), len(pools[1])))
        if len(pools[0]) >= request.calibration and len(pools[1]) >= request.heldout:
            draws = zip(pools, (request.calibration, request.heldout), strict=True)
            first, second = (sorted(rng.sample(pool, count), key=_time_order) for pool, count in draws)
            return first, second
    raise InvalidInputError(
        f"{request.calibration} + {request.heldout} samples were asked for, the logs give {best[0]} + {best[1]} "
        f"without shared frames.",
        reason="TOO_FEW_STEPS",
        remedy="Add logs, or ask for fewer samples.",
        metadata={"calibration": str(best[0]), "heldout": str(best[1])},
    )


def _time_order(window: Window) -> tuple[int, int]:
    return window.run, window.start


def _cut_blocks(runs: Sequence[int], frames: int, size: int, rejected: frozenset[Window]) -> list[list[Window]]:
    blocks = []
    for run, length in enumerate(runs):
        starts = list(range(0, max(length - frames + 1, 0), size))
        for position, start in enumerate(starts):
            # The last block takes what is left of the run, so that no window is lost to a stump.
            end = length if position == len(starts) - 1 else start + size
            windows = [Window(run, first) for first in range(start, min(end, length) - frames + 1)]
            blocks.append([window for window in windows if window not in rejected])
    return [block for block in blocks if block]


def _assign_blocks(
    blocks: list[list[Window]], request: SplitRequest, rng: random.Random
) -> tuple[list[Window], list[Window]]:
    wanted = (request.calibration, request.heldout)
    pools: tuple[list[Window], list[Window]] = ([], [])
    shuffled = list(blocks)
    rng.shuffle(shuffled)
    for block in shuffled:
        # The split that is furthest from its share takes the block; the bigger share goes first.
        shares = [len(pool) / want if want else float("inf") for pool, want in zip(pools, wanted, strict=True)]
        pools[1 if shares[1] <= shares[0] else 0].extend(block)
    return pools
