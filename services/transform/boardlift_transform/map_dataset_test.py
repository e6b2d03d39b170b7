import numpy as np
import pytest

from boardlift_transform.inspect import TensorSpec
from boardlift_transform.io_map import IoEntry
from boardlift_transform.map_dataset import map_inputs, map_references, npz_bytes
from boardlift_transform.refusal import Refusal

OBS = IoEntry("input", TensorSpec("obs", "float32", (1, 6)), TensorSpec("obs_4d", "float32", (1, 1, 1, 6)), "reshape")
STATE = IoEntry("input", TensorSpec("h", "float32", (2, 1, 4)), TensorSpec("h_4d", "float32", (2, 1, 1, 4)), "reshape")
OUT = IoEntry("output", TensorSpec("y", "float64", (1, 3)), TensorSpec("y", "float32", (1, 3, 1, 1)), "reshape")


def test_samples_take_the_new_form() -> None:
    arrays = {"obs": np.arange(30.0).reshape(5, 6), "h": np.zeros((5, 2, 1, 4))}
    made = map_inputs([OBS, STATE], arrays)
    assert made["obs_4d"].shape == (5, 1, 1, 6) and made["obs_4d"].dtype == np.float32
    assert made["h_4d"].shape == (5, 2, 1, 1, 4)
    assert np.array_equal(made["obs_4d"].reshape(5, 6), arrays["obs"])


def test_wrong_samples_are_refused() -> None:
    with pytest.raises(Refusal, match="DATASET_SHAPE"):
        map_inputs([OBS], {"obs": np.zeros((5, 7))})
    with pytest.raises(Refusal, match="DATASET_INPUT_MISSING"):
        map_inputs([OBS], {})


def test_references_take_the_new_form_and_type() -> None:
    made = map_references([OUT], [{"y": np.ones((1, 3))}] * 4)
    assert made["y"].shape == (4, 3, 1, 1) and made["y"].dtype == np.float32


def test_equal_arrays_give_equal_bytes() -> None:
    a = {"x/y": np.ones(3), "b": np.zeros(2)}
    assert npz_bytes(a) == npz_bytes(dict(reversed(a.items())))
