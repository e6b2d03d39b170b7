from __future__ import annotations

import io

import numpy as np
import pytest

from boardlift_compiler.explore.sample_sets import count_samples, overlapping, pack_samples, spread


def test_a_held_out_sample_that_was_calibrated_on_is_found_whatever_its_form():
    values = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    calibration = {"obs": values[:4]}
    heldout = {"obs": values[3:].reshape(3, 1, 5).astype(np.float64)}
    assert overlapping(calibration, heldout) == [0]
    assert overlapping(calibration, {"obs": values[4:]}) == []


@pytest.mark.parametrize(("count", "wanted", "chosen"), [(10, 2, [2, 7]), (3, 8, [0, 1, 2]), (4, 4, [0, 1, 2, 3])])
def test_spread(count, wanted, chosen):
    assert spread(count, wanted) == chosen


def test_packed_samples_are_equal_bytes_and_can_be_read():
    samples = {"b": np.arange(6).reshape(3, 2), "a": np.ones((3, 1), np.float32)}
    packed = pack_samples(samples, [2, 0])
    assert packed == pack_samples(dict(reversed(list(samples.items()))), [2, 0])
    with np.load(io.BytesIO(packed), allow_pickle=False) as loaded:
        assert loaded["b"].tolist() == [[4, 5], [0, 1]]


@pytest.mark.parametrize(
    ("samples", "count"), [({}, 0), ({"a": np.ones((2, 1)), "b": np.ones((3, 1))}, 0), ({"a": np.ones((2, 1))}, 2)]
)
def test_count(samples, count):
    assert count_samples(samples) == count
