from dataclasses import replace

import pytest

from boardlift_compiler.history import History
from boardlift_compiler.parse_log import LogParser
from boardlift_compiler.track_progress import TYPICAL_SECONDS, PastRun, ProgressTracker, RunSize, predict_steps

SIZE = RunSize(20, 1_000_000, 64, "default", "O3")
STEPS = {"prepare": 1.0, "optimise": 1.0, "calibrate": 64.0, "quantise": 1.0, "compile": 10.0}


def test_nothing_known_gives_typical_shares_and_no_remaining_time():
    expected, known = predict_steps(SIZE, [])
    assert (expected, known) == (TYPICAL_SECONDS, False)
    assert ProgressTracker(expected, known).remaining_s(0.0) is None


def test_calibration_scales_with_samples():
    expected, known = predict_steps(replace(SIZE, samples=129), [PastRun(SIZE, STEPS)])
    assert known
    assert expected["calibrate"] == pytest.approx(128.0)
    assert expected["compile"] == 10.0


@pytest.mark.parametrize("change", [{"method": "max"}, {"level": "O1"}, {"model_bytes": 10**9}])
def test_runs_that_do_not_compare_are_not_used(change):
    assert not predict_steps(replace(SIZE, **change), [PastRun(SIZE, STEPS)])[1]


def test_a_recorded_run_moves_forward_only_and_passes_every_step(testdata):
    tracker, parser = ProgressTracker(STEPS, True), LogParser()
    fractions, steps = [], []
    for now, raw in enumerate((testdata / "policy_int8.log").read_text().splitlines()):
        for line in parser.feed(raw):
            tracker.feed(line.text, now / 10)
        fractions.append(tracker.fraction(now / 10))
        steps.append(tracker.step)
    assert fractions == sorted(fractions)
    assert list(dict.fromkeys(steps)) == ["prepare", "optimise", "calibrate", "quantise", "compile", "finish"]
    assert fractions[-1] <= 0.99


def test_calibration_is_counted_and_gives_the_remaining_time():
    tracker = ProgressTracker(STEPS, True)
    tracker.feed("Start to calibrate the model.", 10.0)
    assert tracker.feed("calibration in progress:  50%|## | 32/64 [00:00<00:10,  3.3it/s]", 20.0)
    assert (tracker.done, tracker.total) == (32, 64)
    assert tracker.remaining_s(20.0) == pytest.approx(10.0 + 1.0 + 10.0)


def test_the_compilers_own_percentage_is_shown_and_trusted_the_more_the_further_it_is():
    tracker = ProgressTracker({**STEPS, "compile": 20.0}, True)
    tracker.feed("Start to compile the model.", 0.0)
    tracker.feed("Compile submodel: main_graph_subgraph_0", 0.0)
    assert (tracker.done, tracker.total, tracker.remaining_s(5.0)) == (0, 100, 15.0)
    assert tracker.feed("[==>     ] 6%", 5.0)
    assert (tracker.done, tracker.total) == (6, 100)
    assert tracker.remaining_s(5.0) == pytest.approx(0.06 * 5 * 94 / 6 + 0.94 * 15)  # not 78
    tracker.feed("[=======>] 90%", 18.0)
    assert tracker.remaining_s(18.0) == pytest.approx(2.0, abs=0.1)


def test_history_survives_and_ignores_damage(tmp_path):
    path = tmp_path / "history.jsonl"
    History(path).add(SIZE, STEPS)
    path.write_text(path.read_text() + "{broken\n[]\n")
    (run,) = History(path).runs
    assert run.size == SIZE
