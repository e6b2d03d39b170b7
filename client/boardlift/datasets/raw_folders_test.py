"""Raw calibration folders: sizes, types and counts; names stay at home."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from boardlift.datasets import write_dataset
from boardlift.datasets.raw_folders import RawFolder, build_from_raw_folders, write_raw_folder
from boardlift.errors import InvalidInputError


def put(folder, samples):
    folder.mkdir()
    for index, sample in enumerate(samples):
        sample.tofile(folder / f"secret-{index:02}.bin")
    return folder


def test_samples_come_in_the_order_of_names_and_names_stay_at_home(tmp_path):
    samples = np.random.default_rng(0).standard_normal((12, 1, 3, 4)).astype(np.float32)
    folder = put(tmp_path / "robot_f32", samples)
    (folder / ".hidden").write_text("x")
    made = build_from_raw_folders([RawFolder("obs", folder, (1, 3, 4), "float32")])
    np.testing.assert_array_equal(made.arrays["obs"], samples)
    assert made.split == (12, 0)
    write_dataset(made, tmp_path / "d.npz")
    with zipfile.ZipFile(tmp_path / "d.npz") as archive:
        assert sorted(archive.namelist()) == ["dataset.json", "obs.npy"]
        assert json.loads(archive.read("dataset.json"))["provenance"] == {"builder": "raw_folders", "files": 12}
    everything = (tmp_path / "d.npz").read_bytes()
    assert b"secret" not in everything and b"robot" not in everything


def test_without_a_type_uint8_is_taken_as_by_the_tool_and_floats_are_named(tmp_path):
    folder = put(tmp_path / "images", np.ones((3, 2, 2), np.uint8))
    made = build_from_raw_folders([RawFolder("image", folder, (1, 2, 2))])
    assert str(made.arrays["image"].dtype) == "uint8" and made.arrays["image"].shape == (3, 1, 2, 2)
    floats = put(tmp_path / "floats", np.ones((3, 2, 2), np.float32))
    with pytest.raises(InvalidInputError) as caught:
        build_from_raw_folders([RawFolder("image", floats, (1, 2, 2))])
    assert caught.value.reason == "CALIBRATION_FOLDER_INVALID" and "_f32" in caught.value.remedy


def test_what_cannot_be_used_is_named(tmp_path):
    folder = put(tmp_path / "good", np.ones((3, 4), np.float32))
    few = put(tmp_path / "few", np.ones((2, 4), np.float32))
    (tmp_path / "empty").mkdir()
    np.save(put(tmp_path / "mixed", np.ones((2, 4), np.float32)) / "third.npy", np.ones(4, np.float32))
    cases = {
        "different numbers": [RawFolder("a", folder, (4,), "float32"), RawFolder("b", few, (4,), "float32")],
        "is not there": [RawFolder("a", tmp_path / "absent", (4,))],
        "holds 0 files": [RawFolder("a", tmp_path / "empty", (4,))],
        "third.npy has": [RawFolder("a", tmp_path / "mixed", (4,), "float32")],
        "a sample of a has 4": [RawFolder("a", folder, (4,), "int8")],
    }
    for text, folders in cases.items():
        with pytest.raises(InvalidInputError, match=text) as caught:
            build_from_raw_folders(folders)
        assert caught.value.reason == "CALIBRATION_FOLDER_INVALID"


def test_written_samples_replace_earlier_ones_and_nothing_else(tmp_path):
    folder = tmp_path / "calibration0_f32"
    write_raw_folder(np.zeros((3, 2)), folder, "float32")
    write_raw_folder(np.ones((2, 2)), folder, "float32")
    assert [p.name for p in sorted(folder.iterdir())] == ["000000.bin", "000001.bin"]
    np.testing.assert_array_equal(np.fromfile(folder / "000001.bin", "<f4"), [1, 1])
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"notes\.txt"):
        write_raw_folder(np.zeros((1, 2)), folder, "float32")
    assert len(list(folder.iterdir())) == 3
