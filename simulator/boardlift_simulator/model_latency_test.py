"""Frame times: one BPU, several threads, seeded jitter."""

import numpy as np
import pytest

from boardlift_simulator.model_latency import FrameCost, frame_cost, simulate_frames


def test_cost_is_estimate_plus_stated_host_cost() -> None:
    cost = frame_cost({"a": 300.0, "b": 100.0}, 500_000)
    assert cost.bpu_ms == pytest.approx(0.4)
    assert cost.host_ms == pytest.approx(0.27 + 1.22)


def test_two_threads_approach_the_estimates_rate() -> None:
    cost = FrameCost(bpu_ms=4.0, host_ms=1.0)
    run = simulate_frames(cost, 1000, 2, seed=1, sigma=0.0)
    assert 1000 * 1000 / run.run_ms == pytest.approx(1000 / 4.0)
    assert run.latency_ms.mean() == pytest.approx(8.0)


def test_same_seed_same_run_and_jitter_is_lognormal() -> None:
    cost = FrameCost(1.0, 1.0)
    a, b = (simulate_frames(cost, 20_000, 1, seed=5, sigma=0.1) for _ in range(2))
    assert np.array_equal(a.latency_ms, b.latency_ms)
    assert np.percentile(a.latency_ms, 99) == pytest.approx(2 * np.exp(2.326 * 0.1), rel=0.02)


def test_throttling_slows_the_second_half() -> None:
    run = simulate_frames(FrameCost(1.0, 0.0), 100, 1, seed=5, sigma=0.0, throttled=2.0)
    assert run.latency_ms[:50].mean() == pytest.approx(1.0)
    assert run.latency_ms[50:].mean() == pytest.approx(2.0)
