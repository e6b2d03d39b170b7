"""Measured against estimated: published boards are as estimated, sick ones are not, a simulated one proves nothing."""

import csv
from pathlib import Path

import pytest

from boardlift_board_agent.check_latency import (
    LatencyVerdict,
    discount_simulated,
    expected_single_ms,
    judge_rate,
    judge_single,
)

SHARED = Path(__file__).resolve().parents[4] / "shared/toolchain"
ESTIMATE_US, OUTPUTS = 5167.5, 1_000_000


@pytest.mark.parametrize(
    ("part", "code"),
    [(0.98, "AS_ESTIMATED"), (0.93, "AS_ESTIMATED"), (1.01, "AS_ESTIMATED"), (0.6, "SLOWER_THAN_ESTIMATED"),
     (1.18, "FASTER_THAN_ESTIMATED")],
)  # fmt: skip
def test_the_rate_at_two_threads(part: float, code: str) -> None:
    verdict = judge_rate(ESTIMATE_US, OUTPUTS, 2, part * 1e6 / ESTIMATE_US)
    assert (verdict.code, verdict.ratio) == (code, pytest.approx(part))


def test_the_rate_is_not_judged_without_estimate_or_where_the_host_decides() -> None:
    assert judge_rate(0, OUTPUTS, 2, 100).ratio is None
    assert judge_rate(ESTIMATE_US, OUTPUTS, 1, 100).ratio is None
    assert judge_rate(50, 10, 2, 4000).code == "NOT_JUDGED"  # 0.32 ms, 0.05 of it on the BPU: two threads don't fill it


@pytest.mark.parametrize(
    ("add_ms", "code"), [(0.4, "AS_ESTIMATED"), (2.0, "SLOWER_THAN_ESTIMATED"), (-5.0, "FASTER_THAN_ESTIMATED")]
)
def test_latency_of_a_single_thread(add_ms: float, code: str) -> None:
    assert judge_single(ESTIMATE_US, OUTPUTS, expected_single_ms(ESTIMATE_US, OUTPUTS) + add_ms).code == code


@pytest.mark.shared
def test_published_boards_run_as_estimated() -> None:
    with (SHARED / "compile_estimates_x5.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["measured_2t_fps"] and row["est_latency_us_sum"]]
    assert len(rows) >= 14
    ratios = [float(r["est_latency_us_sum"]) * float(r["measured_2t_fps"]) / 1e6 for r in rows]
    print(f"{len(rows)} models, rate over estimate {min(ratios):.2f} to {max(ratios):.2f}")
    codes = {
        judge_rate(float(r["est_latency_us_sum"]), 0, 2, float(r["measured_2t_fps"])).code for r in rows
    }  # fmt: skip
    assert codes == {"AS_ESTIMATED"}


def test_on_a_simulated_board_agreement_proves_nothing_and_deviation_says_simulated() -> None:
    agreed = discount_simulated(LatencyVerdict("AS_ESTIMATED", "0.97 of the estimated rate.", 0.97))
    assert agreed.code == "ESTIMATE_NOT_TESTED"
    assert agreed.message.startswith("Simulated: 0.97 of") and "proves nothing" in agreed.message
    sick = discount_simulated(LatencyVerdict("SLOWER_THAN_ESTIMATED", "0.4 of the estimated rate.", 0.4))
    assert (sick.code, sick.message) == ("SLOWER_THAN_ESTIMATED", "Simulated: 0.4 of the estimated rate.")
