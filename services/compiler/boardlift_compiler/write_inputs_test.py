import numpy as np
import pytest

from boardlift_compiler.prepare_calibration import RefusedError
from boardlift_compiler.read_model import ModelSummary, TensorInfo
from boardlift_compiler.spec import CompileSpec, InputSpec
from boardlift_compiler.write_inputs import write_inputs

FEATURES = ModelSummary(
    7, {}, "g", (TensorInfo("a", "float32", (1, 3, 8, 4)), TensorInfo("b", "float32", (1, 1, 1, 5))), (), (), {}
)
IMAGE = ModelSummary(7, {}, "g", (TensorInfo("x", "int8", (1, 8, 4, 3)),), (), (), {})


def test_samples_are_written_per_input_with_or_without_their_dimensions_of_one(tmp_path):
    a, b = np.arange(192, dtype=np.float64).reshape(2, 3, 8, 4), np.ones((2, 5), np.float32)
    write_inputs(FEATURES, {"a": a, "b": b, "unused": b}, CompileSpec(), tmp_path / "in.npz")
    with np.load(tmp_path / "in.npz") as made:
        assert set(made.files) == {"a", "b"} and made["a"].dtype == np.float32 and np.array_equal(made["a"], a)


def test_pictures_take_the_layout_and_the_zero_of_the_model(tmp_path):
    spec = CompileSpec(inputs=(InputSpec("x", "rgb", "rgb"),))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 4)).astype(np.uint8)
    write_inputs(IMAGE, {"x": pixels}, spec, tmp_path / "in.npz")
    with np.load(tmp_path / "in.npz") as made:
        assert np.array_equal(made["x"].astype(np.int16) + 128, np.moveaxis(pixels, 1, -1))


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        ({"b": None}, "CALIBRATION_MISSING", "no samples for input b"),
        ({"b": np.ones((3, 5), np.float32)}, "CALIBRATION_MISSING", "a: 2, b: 3"),
        ({"a": np.ones((2, 8, 4, 3), np.float32)}, "CALIBRATION_SAMPLE_SIZE", "[8, 4, 3]"),
    ],
)
def test_what_would_be_fed_wrongly_is_refused(tmp_path, change, code, told):
    samples = {"a": np.ones((2, 3, 8, 4), np.float32), "b": np.ones((2, 5), np.float32), **change}
    with pytest.raises(RefusedError) as caught:
        write_inputs(FEATURES, {n: a for n, a in samples.items() if a is not None}, CompileSpec(), tmp_path / "in.npz")
    assert caught.value.failure.code == code and told in caught.value.failure.message
    assert not list(tmp_path.iterdir())
