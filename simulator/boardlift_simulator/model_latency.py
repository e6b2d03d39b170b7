"""Frame times of a simulated board: the vendor's static estimate plus a stated host cost, with seeded jitter.

    bpu_ms  = sum of the subgraphs' estimates / 1000
    host_ms = 0.27 + 2.44 per million float32 output elements
    one thread:  bpu_ms + host_ms
    T threads:   a frame leaves every max(bpu_ms, (bpu_ms + host_ms) / T); one BPU serves all threads

The host cost is the published relation between estimate and measurement on fourteen detection models; it is a
convention for other models. Nothing here was measured on the user's model: every figure is `simulated`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HOST_BASE_MS = 0.27
HOST_MS_PER_MILLION = 2.44
DEFAULT_SIGMA = 0.01


@dataclass(frozen=True)
class FrameCost:
    """What one frame costs on the simulated board."""

    bpu_ms: float
    """Vendor's static estimate of all subgraphs."""
    host_ms: float
    """Stated host cost."""

    @property
    def total_ms(self) -> float:
        """Latency of a frame alone on the board."""
        return self.bpu_ms + self.host_ms


@dataclass(frozen=True)
class Frames:
    """A simulated run."""

    latency_ms: NDArray[np.float64]
    """Latency per frame, in order."""
    run_ms: float
    """Duration of the whole run."""


def frame_cost(estimates_us: dict[str, float], float_outputs: int) -> FrameCost:
    """Cost of one frame.

    Args:
        estimates_us: vendor's estimate per subgraph in microseconds.
        float_outputs: number of float32 elements the runtime writes per frame.
    """
    return FrameCost(sum(estimates_us.values()) / 1000, HOST_BASE_MS + HOST_MS_PER_MILLION * float_outputs / 1e6)


def simulate_frames(
    cost: FrameCost, frames: int, threads: int, seed: int, sigma: float, slow: float = 1.0, throttled: float = 1.0
) -> Frames:
    """Draws the frame times of a run.

    Args:
        cost: cost of one frame.
        frames: number of frames, at least 1.
        threads: 1 to 8.
        seed: same seed, same run.
        sigma: spread of the lognormal jitter (0.01 is about 1 %).
        slow: factor on every frame.
        throttled: factor on the second half.

    Returns:
        The run.
    """
    interval = max(cost.bpu_ms, cost.total_ms / threads)
    base = interval * threads * slow
    noise = np.exp(np.random.default_rng([seed, threads]).standard_normal(frames) * sigma)
    latency = base * noise
    latency[frames // 2 :] *= throttled
    return Frames(latency, float(latency.sum()) / threads)
