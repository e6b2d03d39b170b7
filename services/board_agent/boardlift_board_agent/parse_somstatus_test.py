"""Reports of X5, X3 and S100, with and without the literal -e."""

from pathlib import Path

import pytest

from boardlift_board_agent.parse_somstatus import parse_somstatus

LOGS = Path(__file__).resolve().parents[4] / "shared" / "toolchain" / "logs"

X5 = """=====================1=====================
temperature-->
        DDR      : 61.0 (C)
        BPU      : 62.5 (C)
        CPU      : 60.5 (C)
cpu frequency-->
-e            min(M)    cur(M)  max(M)
-e      cpu0: 300       1200    1500
bpu status information---->
-e            min(M)    cur(M)  max(M)  ratio
-e      bpu0: 500       1000    1000    37
"""


@pytest.mark.parametrize("text", [X5, X5.replace("-e", "")])
def test_literal_e_makes_no_difference(text: str) -> None:
    got = parse_somstatus(text)
    assert got.temperatures_c == {"ddr": 61.0, "bpu": 62.5, "cpu": 60.5}
    assert got.bpu_ratio == {"bpu0": 37.0}
    assert {c.name: c.current_mhz for c in got.clocks} == {"cpu0": 1200.0, "bpu0": 1000.0}


def test_nothing_is_made_up_from_nothing() -> None:
    got = parse_somstatus("sudo: hrut_somstatus: command not found\n")
    assert (got.temperatures_c, got.clocks, got.bpu_ratio) == ({}, (), {})
    assert got.temperature("bpu") is None


@pytest.mark.shared
@pytest.mark.skipif(not LOGS.is_dir(), reason="left out: no shared data folder beside the checkout")
@pytest.mark.parametrize(
    ("number", "hottest", "clocks", "bpu"),
    [("30", 59.5, 11, {"bpu0": 0.0}), ("40", 56.6, 6, {"bpu0": 0.0, "bpu1": 0.0}), ("41", 40.219, 2, {"bpu0": 0.0})],
)
def test_every_real_report(number: str, hottest: float, clocks: int, bpu: dict[str, float]) -> None:
    got = parse_somstatus(next(LOGS.glob(f"{number}_*")).read_text())
    assert max(got.temperatures_c.values()) == hottest
    assert len(got.clocks) == clocks
    assert got.bpu_ratio == bpu
    assert all(100 <= c.current_mhz <= 5000 for c in got.clocks)
