import numpy as np
import pytest

from boardlift_transform.edit_graph import Array
from boardlift_transform.inspect import TensorSpec
from boardlift_transform.lint_dataset import check_dataset
from boardlift_transform.refusal import Refusal

OBS = TensorSpec("obs", "float32", (-1, 6))
RNG = np.random.default_rng(0)


def _good(count: int = 40) -> Array:
    return RNG.standard_normal((count, 6)).astype(np.float32)


def _codes(array: Array, spec: TensorSpec = OBS) -> set[str]:
    return {f.code for f in check_dataset({spec.name: array}, [spec])}


def test_good_data_passes_without_a_word() -> None:
    assert _codes(_good()) == set()


@pytest.mark.parametrize("shape", [(40, 1, 6), (40, 6)])
def test_the_leading_one_may_be_there_or_not(shape: tuple[int, ...]) -> None:
    assert _codes(_good().reshape(shape)) == set()


def _with(value: float) -> Array:
    array = _good()
    array[3, 2] = value
    return array


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({}, "DATASET_INPUT_MISSING"),
        ({"obs": _good()[:, :5]}, "DATASET_SHAPE"),
        ({"obs": _good()[:0]}, "DATASET_EMPTY"),
        ({"obs": np.zeros((40, 6), np.float32)}, "DATASET_ALL_ZERO"),
        ({"obs": _with(np.nan)}, "DATASET_NOT_FINITE"),
        ({"obs": _with(np.inf)}, "DATASET_NOT_FINITE"),
        ({"obs": np.full((40, 6), "x")}, "DATASET_TYPE"),
    ],
)
def test_hard_faults_are_refused(arrays: dict[str, Array], reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_dataset(arrays, [OBS])
    assert caught.value.reason == reason


def test_different_counts_are_refused() -> None:
    other = TensorSpec("h", "float32", (1, 6))
    with pytest.raises(Refusal) as caught:
        check_dataset({"obs": _good(40), "h": _good(30)}, [OBS, other])
    assert caught.value.reason == "DATASET_LENGTH"


def test_fractions_for_an_integer_input_are_refused() -> None:
    spec = TensorSpec("ids", "int64", (1, 6))
    with pytest.raises(Refusal) as caught:
        check_dataset({"ids": _good()}, [spec])
    assert caught.value.reason == "DATASET_TYPE"


def test_oddities_are_found() -> None:
    still = _good()
    still[:, 0] = 1
    scaled = _good()
    scaled[5] *= 255 * 8
    spike = RNG.standard_normal((2000, 6)).astype(np.float32)
    spike[7, 1] = 1e5
    assert "DATASET_ELEMENTS_CONSTANT" in _codes(still)
    assert "DATASET_MIXED_SCALE" in _codes(scaled)
    assert "DATASET_OUTLIER" in _codes(spike)
    assert "DATASET_DUPLICATES" in _codes(np.repeat(_good(10), 4, axis=0))
    assert "DATASET_FEW_SAMPLES" in _codes(_good(5))
    assert "DATASET_TYPE_CONVERTED" in _codes(_good().astype(np.float64))
    assert "DATASET_INPUT_CONSTANT" in _codes(np.ones((40, 6), np.float32))


def test_a_zero_state_beside_real_inputs_is_a_warning() -> None:
    state = TensorSpec("h", "float32", (1, 6))
    found = check_dataset({"obs": _good(), "h": np.zeros((40, 6), np.float32)}, [OBS, state])
    assert [(f.code, f.severity) for f in found] == [("DATASET_INPUT_ZERO", "warning")]


def test_raw_pixels_are_noticed() -> None:
    image = TensorSpec("image", "float32", (1, 3, 4, 4))
    pixels = RNG.integers(0, 256, (40, 3, 4, 4)).astype(np.float32)
    assert _codes(pixels, image) == {"DATASET_RAW_PIXELS"}
