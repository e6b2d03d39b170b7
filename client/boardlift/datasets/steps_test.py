from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boardlift.datasets import SplitRequest, StepsOptions, build_from_steps, write_dataset
from boardlift.errors import InvalidInputError


def line(t, value, state="RL", size=3, **extra):
    return json.dumps({"t": t, "state": state, "obs_single": [float(value)] * (size - 1) + [float(t)], **extra})


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


KINDS = st.lists(st.sampled_from("RRRRRRRRSGB"), min_size=60, max_size=200)


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(1, 4))
def test_a_sample_never_crosses_a_gap_a_state_change_or_a_bad_line(tmp_path_factory, kinds, frames):
    """R: RL step, S: step in another state, G: a step after a pause, B: a bad line."""
    lines, breaks, t = [], set(), 0.0
    for index, kind in enumerate(kinds):
        t += 1.0 if kind == "G" else 0.02
        if kind in "SGB":
            breaks.add(index)
        lines.append("{" if kind == "B" else line(round(t, 3), index, "STAND" if kind == "S" else "RL"))
    path = write(tmp_path_factory.mktemp("d") / "a.jsonl", lines)
    try:
        dataset = build_from_steps([path], StepsOptions(frames=frames), SplitRequest(4, 4))
    except InvalidInputError as error:
        assert error.reason in ("TOO_FEW_STEPS", "NO_STEPS")
        return
    for sample in dataset.arrays["obs"].reshape(-1, frames, 3):
        numbers = sample[:, 0].astype(int).tolist()
        assert numbers == list(range(numbers[0], numbers[0] + frames))
        assert not breaks & set(numbers[1:])
        assert kinds[numbers[0]] in "RG"


def test_a_sample_never_crosses_a_log_boundary(tmp_path):
    for name, base in (("a", 0), ("b", 1000)):
        write(tmp_path / f"{name}.jsonl", [line(round(i * 0.02, 3), base + i) for i in range(60)])
    dataset = build_from_steps(sorted(tmp_path.iterdir()), StepsOptions(frames=5), SplitRequest(20, 20))
    logs = dataset.arrays["obs"].reshape(-1, 5, 3)[:, :, 0] >= 1000
    assert (logs.all(1) | (~logs).all(1)).all()


def test_frames_are_stacked_in_the_declared_order(tmp_path):
    path = write(tmp_path / "a.jsonl", [line(round(i * 0.02, 3), i) for i in range(80)])
    split = SplitRequest(5, 5)
    old = build_from_steps([path], StepsOptions(frames=4), split).arrays["obs"].reshape(-1, 4, 3)
    new = build_from_steps([path], StepsOptions(frames=4, order="newest-first"), split).arrays["obs"].reshape(-1, 4, 3)
    terms = build_from_steps([path], StepsOptions(frames=4, terms=(2, 1)), split).arrays["obs"]
    np.testing.assert_array_equal(old, new[:, ::-1])
    np.testing.assert_array_equal(terms[:, :8], old[:, :, :2].reshape(-1, 8))
    np.testing.assert_array_equal(terms[:, 8:], old[:, :, 2])


def test_provenance_names_digests_lines_and_reasons(tmp_path):
    lines = [line(round(i * 0.02, 3), i) for i in range(80)]
    lines[10] = "{broken"
    lines[20] = line(0.4, 20, state="STAND")
    lines[30] = json.dumps({"t": 0.6})
    lines[40] = line(0.8, float("nan"))
    lines[42] = line(0.84, 42)
    dataset = build_from_steps([write(tmp_path / "a.jsonl", lines)], StepsOptions(frames=3), SplitRequest(6, 6))
    log = dataset.document["provenance"]["files"][0]
    assert log["name"] == "a.jsonl" and len(log["sha256"]) == 64 and log["lines"] == 80 and log["steps"] == 76
    expected = {"BROKEN_LINE": 1, "NOT_IN_STATE": 1, "FIELD_MISSING": 1, "BAD_FRAME": 1, "RUN_TOO_SHORT": 0}
    assert log["dropped"] == {k: v for k, v in expected.items() if v}
    assert log["bad_lines"] == [11, 31, 41]
    for sample, (file, first, last) in zip(
        dataset.arrays["obs"].reshape(-1, 3, 3), dataset.document["provenance"]["samples"], strict=True
    ):
        assert file == 0 and (first, last) == (int(sample[0, 0]) + 1, int(sample[-1, 0]) + 1)


def test_a_robot_that_stands_still_gives_no_duplicate_samples(tmp_path):
    lines = [
        json.dumps({"t": i * 0.02, "state": "RL", "obs_single": [0.0 if i < 300 else float(i)]}) for i in range(500)
    ]
    dataset = build_from_steps([write(tmp_path / "a.jsonl", lines)], StepsOptions(frames=5), SplitRequest(30, 30))
    assert len(np.unique(dataset.arrays["obs"], axis=0)) == 60
    assert dataset.document["provenance"]["duplicates"] == 295


def test_the_same_logs_give_the_same_file_in_any_order(tmp_path):
    paths = [
        write(tmp_path / f"{n}.jsonl", [line(round(i * 0.02, 3), i + 500 * n) for i in range(100)]) for n in range(3)
    ]
    for name, order in (("x.npz", paths), ("y.npz", paths[::-1])):
        write_dataset(build_from_steps(order, StepsOptions(frames=5), SplitRequest(20, 20)), tmp_path / name)
    assert (tmp_path / "x.npz").read_bytes() == (tmp_path / "y.npz").read_bytes()


@pytest.mark.parametrize(
    ("lines", "options", "reason"),
    [
        ([line(0, 1)], StepsOptions(states=("AUTO",)), "NO_STEPS"),
        ([line(0, 1), line(0.02, 1, size=4)], StepsOptions(), "FRAME_SIZES_DIFFER"),
        ([line(0, 1)] * 3, StepsOptions(terms=(9,)), "FRAME_SIZES_DIFFER"),
        ([line(0, 1)], StepsOptions(order="random"), "DATASET_INVALID"),
        ([line(0, 1)], StepsOptions(frames=0), "DATASET_INVALID"),
        ([line(0, 1)], StepsOptions(), "TOO_FEW_STEPS"),
    ],
)
def test_unusable_logs_are_refused_with_a_reason(tmp_path, lines, options, reason):
    with pytest.raises(InvalidInputError) as caught:
        build_from_steps([write(tmp_path / "a.jsonl", lines)], options)
    assert caught.value.reason == reason and caught.value.remedy


def test_an_absent_log_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="STEPS_UNREADABLE"):
        build_from_steps([tmp_path / "none.jsonl"])


def test_states_and_fields_that_are_there_stand_beside_those_that_were_wanted(tmp_path):
    log = write(tmp_path / "a.jsonl", [line(0, 1), json.dumps({"t": 1, "mode": "RL"})])
    with pytest.raises(InvalidInputError) as caught:
        build_from_steps([log], StepsOptions(states=("AUTO",)))
    assert "wanted: AUTO" in caught.value.remedy and "the states RL: choose by --state" in caught.value.remedy
    assert "have t, mode" in caught.value.remedy


def test_a_file_that_is_no_log_is_called_that_and_not_a_log_with_other_fields(tmp_path):
    np.save(tmp_path / "obs.npy", np.zeros((4, 3)))
    with pytest.raises(InvalidInputError, match="NO_STEPS") as refused:
        build_from_steps([tmp_path / "obs.npy"])
    assert "JSON lines" in refused.value.remedy and "term sizes" not in refused.value.remedy
