from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boardlift.datasets.draw import SplitRequest, Window, draw_windows
from boardlift.errors import InvalidInputError

RUNS = st.lists(st.integers(0, 120), max_size=8)


def frames_of(windows, frames):
    return {(w.run, w.start + i) for w in windows for i in range(frames)}


@settings(max_examples=200, deadline=None)
@given(RUNS, st.integers(1, 12), st.integers(0, 20), st.integers(0, 20), st.integers(0, 5))
def test_no_frame_is_in_both_splits_and_no_window_leaves_its_run(runs, frames, calibration, heldout, seed):
    try:
        drawn = draw_windows(runs, frames, SplitRequest(calibration, heldout, seed))
    except InvalidInputError as error:
        assert error.reason == "TOO_FEW_STEPS" and error.remedy
        return
    assert [len(set(windows)) for windows in drawn] == [calibration, heldout]
    assert not frames_of(drawn[0], frames) & frames_of(drawn[1], frames)
    assert all(w.start >= 0 and w.start + frames <= runs[w.run] for windows in drawn for w in windows)


def test_the_same_seed_draws_the_same_windows_and_another_seed_others():
    draws = [draw_windows([400, 300], 5, SplitRequest(20, 20, seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_rejected_windows_are_never_drawn():
    rejected = frozenset(Window(0, start) for start in range(0, 200, 2))
    calibration, heldout = draw_windows([200], 3, SplitRequest(15, 15), rejected)
    assert not rejected & {*calibration, *heldout}


def test_plenty_of_data_is_not_refused_for_a_lopsided_request():
    calibration, heldout = draw_windows([2000], 5, SplitRequest(512, 64))
    assert (len(calibration), len(heldout)) == (512, 64)


def test_too_little_data_says_how_much_there_is():
    with pytest.raises(InvalidInputError, match="TOO_FEW_STEPS") as caught:
        draw_windows([30], 5, SplitRequest(64, 64))
    assert int(caught.value.metadata["calibration"]) < 64
