from __future__ import annotations

import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from boardlift.datasets import Dataset, read_dataset, write_dataset
from boardlift.errors import InvalidInputError

DTYPES = st.sampled_from(["float32", "int64", "uint8", "bool", ">f4", "float64"])
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


@settings(max_examples=60, deadline=None)
@given(DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES, elements={"allow_nan": False} if "f" in dtype else None)))
def test_what_is_written_is_read_back_and_equal_content_gives_equal_bytes(tmp_path_factory, array):
    folder = tmp_path_factory.mktemp("d")
    dataset = Dataset({"obs": array}, {"provenance": {"note": "ä"}})
    for name in ("a.npz", "b.npz"):
        write_dataset(dataset, folder / name)
    back = read_dataset(folder / "a.npz")
    np.testing.assert_array_equal(back.arrays["obs"], array)
    assert back.document["provenance"] == {"note": "ä"}
    assert back.document["inputs"]["obs"]["shape"] == list(array.shape[1:])
    assert (folder / "a.npz").read_bytes() == (folder / "b.npz").read_bytes()


def test_memory_order_does_not_change_the_file(tmp_path):
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    write_dataset(Dataset({"x": array}), tmp_path / "c.npz")
    write_dataset(Dataset({"x": np.asfortranarray(array)}), tmp_path / "f.npz")
    assert (tmp_path / "c.npz").read_bytes() == (tmp_path / "f.npz").read_bytes()


def test_numpy_reads_the_file_and_finds_the_document(tmp_path):
    write_dataset(Dataset({"x": np.ones((3, 2))}, {"split": {"calibration": 1, "heldout": 2}}), tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz") as archive:
        assert archive["x"].shape == (3, 2)
        assert b'"split"' in bytes(archive["dataset.json"])
    assert read_dataset(tmp_path / "d.npz").split == (1, 2)


def test_a_plain_npz_is_a_dataset_without_a_document(tmp_path):
    np.savez(tmp_path / "p.npz", a=np.ones((4, 3)), b=np.zeros((4, 1)))
    dataset = read_dataset(tmp_path / "p.npz")
    assert dataset.samples == 4 and dataset.split is None and not dataset.document
    assert "4 samples" in repr(dataset)


@pytest.mark.parametrize(
    ("arrays", "document"),
    [
        ({}, {}),
        ({"a": np.ones((2, 1)), "b": np.ones((3, 1))}, {}),
        ({"a": np.ones((0, 1))}, {}),
        ({"a": np.float32(1)}, {}),
        ({"../a": np.ones((2, 1))}, {}),
        ({"a": np.array([["x"]])}, {}),
        ({"a": np.ones((2, 1))}, {"split": {"calibration": 2, "heldout": 1}}),
    ],
)
def test_unusable_datasets_are_refused(tmp_path, arrays, document):
    with pytest.raises(InvalidInputError, match="DATASET_INVALID"):
        write_dataset(Dataset({k: np.asarray(v) for k, v in arrays.items()}, document), tmp_path / "x.npz")


def test_pickles_and_foreign_members_are_refused(tmp_path):
    np.savez(tmp_path / "pickle.npz", a=np.array([{"x": 1}], dtype=object))
    with zipfile.ZipFile(tmp_path / "foreign.npz", "w") as archive:
        archive.writestr("evil.py", "print()")
    (tmp_path / "text.npz").write_text("not a zip")
    for name in ("pickle.npz", "foreign.npz", "text.npz", "absent.npz"):
        with pytest.raises(InvalidInputError, match="DATASET_UNREADABLE"):
            read_dataset(tmp_path / name)
