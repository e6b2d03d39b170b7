"""One published relation between estimate and measurement, written down where each service and the stand-in need it."""

import pytest
from boardlift_board_agent import check_latency
from boardlift_compiler.explore import estimate
from boardlift_simulator import model_latency


def test_everybody_counts_the_same_host_cost():
    for bpu_us, floats in ((50.0, 12), (3100.0, 645_120), (9000.0, 1_000_000)):
        expected = check_latency.expected_single_ms(bpu_us, floats)
        assert model_latency.frame_cost({"g": bpu_us}, floats).total_ms == pytest.approx(expected, rel=1e-12)
        assert estimate.estimate_board([bpu_us], floats).board_ms == pytest.approx(expected, rel=1e-12)
