import numpy as np
import pytest

from boardlift_transform.normalise_samples import Normalisation, normalise_samples
from boardlift_transform.refusal import Refusal

PIXELS = np.random.default_rng(3).integers(0, 256, (5, 3, 4, 6)).astype(np.float32)
MEAN, SCALE = (123.7, 116.3, 103.5), (0.017, 0.018, 0.019)


@pytest.mark.parametrize("layout", ["", "NCHW", "NHWC"])
def test_mean_and_scale_go_along_the_channels_of_the_layout(layout: str) -> None:
    pixels = PIXELS.transpose(0, 2, 3, 1) if layout == "NHWC" else PIXELS
    state = np.ones((5, 7), np.float32)
    fed = normalise_samples({"image": pixels, "state": state}, [Normalisation("image", MEAN, SCALE, layout)])
    found = fed["image"].transpose(0, 3, 1, 2) if layout == "NHWC" else fed["image"]
    for channel in range(3):
        np.testing.assert_allclose(found[:, channel], (PIXELS[:, channel] - MEAN[channel]) * SCALE[channel], rtol=1e-5)
    assert fed["image"].dtype == np.float32 and fed["state"] is state


def test_one_number_holds_for_all_channels_and_what_is_left_out_changes_nothing() -> None:
    only_scale = normalise_samples({"image": PIXELS}, [Normalisation("image", scale=(1 / 255,))])["image"]
    np.testing.assert_allclose(only_scale, PIXELS / 255, rtol=1e-6)
    only_mean = normalise_samples({"image": PIXELS}, [Normalisation("image", mean=(128.0,))])["image"]
    np.testing.assert_array_equal(only_mean, PIXELS - 128)


@pytest.mark.parametrize(
    ("arrays", "item", "reason"),
    [
        ({"image": PIXELS}, Normalisation("picture", MEAN), "INPUT_NOT_FOUND"),
        ({"image": PIXELS}, Normalisation("image", MEAN[:2]), "NORM_TYPE_INVALID"),
        ({"image": PIXELS}, Normalisation("image", MEAN, layout="NHWC"), "NORM_TYPE_INVALID"),
        ({"image": PIXELS.astype(np.uint8)}, Normalisation("image", MEAN), "NORM_TYPE_INVALID"),
        ({"image": np.ones((5, 3), np.float32)}, Normalisation("image", MEAN), "NORM_TYPE_INVALID"),
    ],
)
def test_what_does_not_fit_is_refused(arrays: dict[str, np.ndarray], item: Normalisation, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        normalise_samples(arrays, [item])
    assert refused.value.reason == reason and refused.value.remedy
