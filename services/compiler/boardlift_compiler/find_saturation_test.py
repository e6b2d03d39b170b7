import numpy as np
import pytest

from boardlift_compiler.find_saturation import describe_saturation

RNG = np.random.default_rng(0)
REFERENCE = RNG.standard_normal((6, 1, 2, 20))


def rounded(values: np.ndarray, step: float) -> np.ndarray:
    return (np.round(values / step) * step).astype(np.float32)


def test_an_output_that_stops_where_the_float_model_goes_on_saturates() -> None:
    (found,) = describe_saturation("y", np.clip(rounded(REFERENCE, 0.05), -1.2, 1.2), REFERENCE)
    assert (found.code, found.severity, found.subject) == ("OUTPUT_SATURATES", "warning", "y")
    assert "-1.2 and 1.2" in found.message and f"{REFERENCE.max():.4g}" in found.message


def test_one_sample_with_most_of_the_noise_is_named() -> None:
    got = rounded(REFERENCE, 0.05)
    got[3] *= 0.5
    (found,) = describe_saturation("y", got, REFERENCE)
    assert found.code == "SAMPLE_OUTSIDE_CALIBRATION" and "sample 3" in found.message


@pytest.mark.parametrize("step", [0.01, 0.3])
def test_even_noise_is_quantisation_and_nothing_is_said(step: float) -> None:
    assert describe_saturation("y", rounded(REFERENCE, step), REFERENCE) == []


def test_what_says_nothing_is_left_alone() -> None:
    few = REFERENCE[:3].copy()
    few[1] *= 0.5
    assert describe_saturation("y", few, REFERENCE[:3]) == []
    assert describe_saturation("y", np.full_like(REFERENCE, np.nan), REFERENCE) == []
    assert describe_saturation("y", REFERENCE[:, :, :1], REFERENCE) == []
    assert describe_saturation("y", REFERENCE, np.ones_like(REFERENCE)) == []
