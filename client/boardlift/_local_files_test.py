from __future__ import annotations

import numpy as np
import pytest

from boardlift._arguments import dataset_file
from boardlift._external_data import find_external_files
from boardlift._model_inputs import read_input_shapes
from boardlift._transfer import prepare_upload
from boardlift._user_arrays import fit_user_arrays
from boardlift.compile_model import _read_yaml
from boardlift.connection import Connection
from boardlift.datasets import ArraySource, StepsOptions, build_from_arrays, build_from_steps, read_dataset
from boardlift.errors import InvalidInputError

READERS = {
    "MODEL_UNREADABLE": [find_external_files, read_input_shapes],
    "DATASET_UNREADABLE": [read_dataset, lambda path: dataset_file(path, path.parent)],
    "ARRAYS_UNREADABLE": [
        lambda path: fit_user_arrays(path, [], path.parent),
        lambda path: build_from_arrays([ArraySource("obs", path)]),
    ],
    "FILE_UNREADABLE": [prepare_upload],
    "CONFIG_UNREADABLE": [_read_yaml],
    "STEPS_UNREADABLE": [lambda path: build_from_steps([path], StepsOptions())],
    "TOKEN_UNREADABLE": [lambda path: Connection.from_environment(environ={"BOARDLIFT_TOKEN_FILE": str(path)})],
}
PLACES = {"absent.npz": "there is no such file", "folder.npz": "it is a folder"}
CASES = [
    (reason, read, place)
    for reason, readers in READERS.items()
    for read in readers
    for place in PLACES
    if (reason, place) != ("ARRAYS_UNREADABLE", "folder.npz")  # a folder of arrays is a source
]


@pytest.mark.parametrize(("reason", "read", "place"), CASES)
def test_every_reader_names_the_file_and_says_why_in_the_same_words(tmp_path, reason, read, place):
    (tmp_path / "folder.npz").mkdir()
    said = PLACES[place]
    with pytest.raises(InvalidInputError, match=f"{place} can't be .*: {said}") as caught:
        read(tmp_path / place)
    assert caught.value.reason == reason and caught.value.metadata["file"].endswith(place) and caught.value.remedy


@pytest.mark.parametrize("read", [find_external_files, read_input_shapes, read_dataset])
def test_an_empty_file_is_called_empty(tmp_path, read):
    (tmp_path / "m.onnx").touch()
    with pytest.raises(InvalidInputError, match=r"m\.onnx can't be read as .*: it is empty\. "):
        read(tmp_path / "m.onnx")


def test_python_objects_are_named_whatever_reads_them(tmp_path):
    np.savez(tmp_path / "o.npz", obs=np.array([{"a": 1}], dtype=object))
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object))
    for read, name in [
        (read_dataset, "o.npz"),
        (lambda path: dataset_file(path, tmp_path), "o.npz"),
        (lambda path: build_from_arrays([ArraySource("obs", path)]), "o.npz"),
        (lambda path: build_from_arrays([ArraySource("obs", path)]), "o.npy"),
    ]:
        with pytest.raises(InvalidInputError, match=rf"{name} can't.* holds Python objects, not numbers"):
            read(tmp_path / name)


def test_a_server_calls_a_dataset_something_better_than_its_digest(tmp_path):
    (tmp_path / ("0" * 64)).write_text("no archive")
    with pytest.raises(InvalidInputError, match=r"The dataset can't be read .*: it is no \.npz, or cut off") as caught:
        read_dataset(tmp_path / ("0" * 64), "The dataset")
    assert "0" * 64 not in str(caught.value) and not caught.value.metadata


def test_samples_of_a_large_file_are_not_read_to_see_whether_it_is_one(tmp_path):
    np.savez(tmp_path / "d.npz", obs=np.ones((100_000, 3), np.float32))
    data = (tmp_path / "d.npz").read_bytes()
    spoilt = data.replace(
        np.float32(1).tobytes() * 3, np.float32(2).tobytes() * 3
    )  # the archive's checksum is wrong now
    (tmp_path / "d.npz").write_bytes(spoilt)
    assert dataset_file(tmp_path / "d.npz", tmp_path) == tmp_path / "d.npz"
    with pytest.raises(InvalidInputError, match="DATASET_UNREADABLE"):
        read_dataset(tmp_path / "d.npz")
