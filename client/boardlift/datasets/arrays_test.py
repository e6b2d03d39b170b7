from __future__ import annotations

import numpy as np
import pytest

from boardlift.datasets import ArraySource, SplitRequest, build_from_arrays
from boardlift.errors import InvalidInputError

SAMPLES = np.arange(40 * 6, dtype=np.float32).reshape(40, 2, 3)


def test_every_form_gives_the_same_samples(tmp_path):
    np.save(tmp_path / "a.npy", SAMPLES)
    np.savez(tmp_path / "a.npz", other=np.zeros(1), x=SAMPLES)
    np.savez(tmp_path / "only.npz", whatever=SAMPLES)
    SAMPLES.tofile(tmp_path / "a.bin")
    for folder, suffix in (("npys", ".npy"), ("bins", ".bin")):
        (tmp_path / folder).mkdir()
        for index, sample in enumerate(SAMPLES):
            path = tmp_path / folder / f"{index:03}{suffix}"
            np.save(path, sample) if suffix == ".npy" else sample.tofile(path)
    for name in ("a.npy", "a.npz", "only.npz", "a.bin", "npys", "bins"):
        dataset = build_from_arrays([ArraySource("x", tmp_path / name, shape=(2, 3))])
        np.testing.assert_array_equal(dataset.arrays["x"], SAMPLES)
        assert dataset.document["provenance"]["files"][0]["sha256"]


def test_an_array_of_an_archive_is_chosen_by_name_and_the_others_are_named(tmp_path):
    np.savez(tmp_path / "io.npz", in__x=SAMPLES, out__y=np.zeros(1))
    chosen = build_from_arrays([ArraySource("x", tmp_path / "io.npz", member="in__x")])
    np.testing.assert_array_equal(chosen.arrays["x"], SAMPLES)
    with pytest.raises(InvalidInputError, match=r"it holds in__x, out__y, not x; choose by x=io.npz:NAME"):
        build_from_arrays([ArraySource("x", tmp_path / "io.npz")])


def test_split_is_seeded_disjoint_and_uses_duplicates_once(tmp_path):
    np.save(tmp_path / "a.npy", np.concatenate([SAMPLES, SAMPLES]))
    source = ArraySource("x", tmp_path / "a.npy", layout="NCHW", color="bgr")
    dataset = build_from_arrays([source], SplitRequest(10, 20, 3))
    again = build_from_arrays([source], SplitRequest(10, 20, 3))
    np.testing.assert_array_equal(dataset.arrays["x"], again.arrays["x"])
    assert len(np.unique(dataset.arrays["x"], axis=0)) == 30 and dataset.split == (10, 20)
    assert dataset.document["provenance"]["duplicates"] == 40
    assert dataset.document["inputs"]["x"] == {"layout": "NCHW", "color": "bgr"}
    with pytest.raises(InvalidInputError, match=r"TOO_FEW_SAMPLES.*--calibration 24 --heldout 16"):
        build_from_arrays([source], SplitRequest(30, 20))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.bin", {}),
        ("a.bin", {"shape": (7, 11)}),
        ("a.bin", {"shape": (2, 3), "dtype": "nonsense"}),
        ("a.npy", {"shape": (3, 2)}),
        ("a.npz", {"input_name": "y"}),
        ("absent.npy", {}),
        ("empty", {}),
        ("mixed", {}),
    ],
)
def test_unusable_sources_are_refused(tmp_path, name, options):
    np.save(tmp_path / "a.npy", SAMPLES)
    np.savez(tmp_path / "a.npz", x=SAMPLES, z=SAMPLES)
    SAMPLES.tofile(tmp_path / "a.bin")
    (tmp_path / "empty").mkdir()
    (tmp_path / "mixed").mkdir()
    np.save(tmp_path / "mixed" / "a.npy", np.ones(2))
    np.save(tmp_path / "mixed" / "b.npy", np.ones(3))
    source = ArraySource(**{"input_name": "x", "path": tmp_path / name, **options})
    with pytest.raises(InvalidInputError, match="ARRAYS_UNREADABLE"):
        build_from_arrays([source])


def test_unknown_layout_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="DATASET_INVALID"):
        build_from_arrays([ArraySource("x", tmp_path / "a.npy", layout="HWC")])


@pytest.mark.parametrize(("rows", "said"), [([3], "sample 3 holds NaN or Inf"), ([3, 7], "2 samples hold NaN or Inf")])
def test_nan_and_infinity_are_refused_where_the_dataset_is_made(tmp_path, rows, said):
    bad = SAMPLES.copy()
    bad[rows, 1, 1] = np.inf
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(InvalidInputError, match=f"DATASET_NOT_FINITE: bad.npy .* input x: {said}") as caught:
        build_from_arrays([ArraySource("x", tmp_path / "bad.npy")])
    assert caught.value.metadata == {"file": "bad.npy", "input": "x"}
