from __future__ import annotations

import numpy as np
import pytest

from boardlift._user_arrays import fit_user_arrays
from boardlift.errors import InvalidInputError
from boardlift.v1 import toolchain_pb2, transform_pb2

SPEC = toolchain_pb2.TensorSpec
ENTRIES = [
    transform_pb2.IoMapping(before=SPEC(name="obs"), after=SPEC(name="obs_4d")),
    transform_pb2.IoMapping(before=SPEC(name="image"), after=SPEC(name="image")),
    transform_pb2.IoMapping(before=SPEC(name="sr")),  # frozen: not fed any more
]


def test_names_of_the_users_model_become_those_of_the_compiled_one(tmp_path):
    arrays = {"obs": np.ones((4, 3), np.float32), "image": np.zeros((4, 2), np.uint8), "other": np.ones(1)}
    np.savez(tmp_path / "mine.npz", **arrays)
    (tmp_path / "new").mkdir()
    path, renamed = fit_user_arrays(tmp_path / "mine.npz", ENTRIES, tmp_path / "new")
    assert renamed == {"obs": "obs_4d"}
    with np.load(path) as found:
        assert sorted(found.files) == ["image", "obs_4d", "other"]
        assert found["image"].dtype == np.uint8 and found["obs_4d"].shape == (4, 3)


def test_names_of_the_compiled_model_stay_and_the_file_is_sent_as_it_is(tmp_path):
    np.savez(tmp_path / "mine.npz", obs=np.ones(1), obs_4d=np.ones(1))
    assert fit_user_arrays(tmp_path / "mine.npz", ENTRIES, tmp_path) == (tmp_path / "mine.npz", {})


def test_other_files_are_refused_before_they_are_sent(tmp_path):
    (tmp_path / "mine.npz").write_text("no archive")
    with pytest.raises(InvalidInputError, match="ARRAYS_UNREADABLE"):
        fit_user_arrays(tmp_path / "mine.npz", ENTRIES, tmp_path)
