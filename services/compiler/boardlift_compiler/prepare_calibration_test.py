import pickle
import zipfile

import numpy as np
import pytest

from boardlift_compiler.apply_preset import complete_spec
from boardlift_compiler.prepare_calibration import RefusedError, prepare_samples, read_samples, write_samples
from boardlift_compiler.read_model import read_model
from boardlift_compiler.spec import CompileSpec, InputSpec


def prepare(model, samples, spec=None):
    summary = read_model(model.SerializeToString())
    return prepare_samples(samples, complete_spec(spec or CompileSpec(), summary, 1), summary)


def refused(model, samples, spec=None):
    with pytest.raises(RefusedError) as caught:
        prepare(model, samples, spec)
    return caught.value.failure


def good(count=24):
    return np.random.default_rng(0).standard_normal((count, 1, 1, 225)).astype(np.float32)


def poisoned(value):
    array = good()
    array[5, 0, 0, 7] = value
    return array


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (poisoned(np.nan), "CALIBRATION_NOT_FINITE"),
        (poisoned(np.inf), "CALIBRATION_NOT_FINITE"),
        (np.full((4, 225), 1.0) * np.where(np.arange(225) == 3, -1e39, 1), "CALIBRATION_NOT_FINITE"),
        (np.zeros((4, 225), np.float32), "CALIBRATION_ALL_ZERO"),
        (np.ones((4, 224), np.float32), "CALIBRATION_SAMPLE_SIZE"),
        (np.ones((0, 225), np.float32), "CALIBRATION_EMPTY"),
        (np.array(["a"] * 4), "CALIBRATION_TYPE"),
        (np.ones((4, 225), np.complex64), "CALIBRATION_TYPE"),
        (np.float32(3), "CALIBRATION_EMPTY"),
    ],
)
def test_samples_that_the_tool_would_swallow_are_refused(models, array, code):
    assert refused(models.policy(), {"obs_4d": np.asarray(array)}).code == code


def test_the_broken_sample_is_named(models):
    failure = refused(models.policy(), {"obs_4d": poisoned(np.nan)})
    assert failure.subject == "obs_4d"
    assert "sample 5" in failure.evidence[0]


def test_missing_input_and_unequal_counts(models):
    xa, xb = np.ones((4, 4, 20, 20), np.float32), np.ones((3, 3, 20, 20), np.float32)
    assert refused(models.two_islands(), {"xa": xa}).code == "CALIBRATION_MISSING"
    assert refused(models.two_islands(), {"xa": xa, "xb": xb}).code == "CALIBRATION_MISSING"


def findings(data):
    return {f.code for f in data.findings}


def test_suspicious_data_is_said(models):
    policy = models.policy()
    assert findings(prepare(policy, {"obs_4d": good()})) == set()
    assert findings(prepare(policy, {"obs_4d": good(3)})) == {"CALIBRATION_FEW_SAMPLES"}
    assert "CALIBRATION_CONSTANT" in findings(prepare(policy, {"obs_4d": np.full((30, 225), 2.5, np.float32)}))
    assert "CALIBRATION_IDENTICAL" in findings(prepare(policy, {"obs_4d": np.repeat(good(1), 30, axis=0)}))
    assert "CALIBRATION_HUGE" in findings(prepare(policy, {"obs_4d": good() * 1e8}))


RGB = CompileSpec(inputs=(InputSpec("image", "rgb", "nv12", norm_type="data_scale", scale=(0.004,)),))


@pytest.mark.parametrize(
    ("array", "dtype"),
    [(np.arange(256, dtype=np.uint8), "uint8"), (np.arange(256, dtype=np.float32), "uint8"),
     (np.arange(256, dtype=np.float32) / 2, "float32")],
)  # fmt: skip
def test_pictures_are_written_in_the_smallest_exact_type(models, array, dtype):
    images = np.resize(array, (20, 3, 32, 48))
    data = prepare(models.camera(), {"image": images}, RGB)
    assert data.spec.inputs[0].calibration_dtype == dtype
    assert data.arrays["image"].dtype == dtype


def test_pixels_out_of_range_and_normalised_twice(models):
    images = np.resize(np.arange(256, dtype=np.float32), (20, 3, 32, 48))
    assert refused(models.camera(), {"image": images * 2}, RGB).code == "CALIBRATION_RANGE"
    data = prepare(models.camera(), {"image": images / 255}, RGB)
    assert "CALIBRATION_LOOKS_NORMALISED" in findings(data)


def test_files_have_our_names_and_exactly_the_samples_bytes(models, tmp_path):
    array = good(3)
    write_samples(prepare(models.policy(), {"obs_4d": array}), tmp_path)
    files = sorted(tmp_path.rglob("*.bin"))
    assert [f.relative_to(tmp_path).as_posix() for f in files] == [f"calibration0_f32/{k:06d}.bin" for k in range(3)]
    assert b"".join(f.read_bytes() for f in files) == array.tobytes()


def test_float64_is_narrowed_and_a_batch_dimension_may_be_written_or_not(models):
    data = prepare(models.policy(), {"obs_4d": good().astype(np.float64).reshape(-1, 225)})
    assert data.arrays["obs_4d"].dtype == np.float32
    assert data.arrays["obs_4d"].shape == (24, 1, 1, 1, 225)


def test_archives_with_pickles_or_without_sense_are_refused(tmp_path):
    path = tmp_path / "evil.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", pickle.dumps({"a": 1}))
    with pytest.raises(RefusedError):
        read_samples(path)
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(RefusedError):
        read_samples(path)
    path.write_bytes(b"no archive")
    with pytest.raises(RefusedError):
        read_samples(path)
    with pytest.raises(RefusedError):
        read_samples(tmp_path / "absent.npz")
