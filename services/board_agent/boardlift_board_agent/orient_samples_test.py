"""Channels go where the compiled input has them, only where the layouts differ."""

import numpy as np
import pytest
from boardlift.errors import InvalidInputError

from boardlift_board_agent.orient_samples import orient_samples
from boardlift_board_agent.tensor_spec import TensorSpec

SAMPLES = {"x": np.arange(2 * 3 * 3 * 3, dtype=np.float32).reshape(2, 1, 3, 3, 3)}


def spec(layout: str, kind: str = "HB_DNN_TENSOR_TYPE_F32") -> tuple[TensorSpec, ...]:
    return (TensorSpec("x", True, (1, 3, 3, 3), kind, 108, layout=f"HB_DNN_LAYOUT_{layout}"),)


@pytest.mark.parametrize(("given", "taken", "axes"), [("NCHW", "NHWC", (2, -1)), ("NHWC", "NCHW", (-1, 2))])
def test_layouts_that_differ_are_turned_even_when_the_shape_does_not_show_it(given, taken, axes) -> None:
    turned = orient_samples(SAMPLES, spec(taken), {"x": given})["x"]
    assert np.array_equal(turned, np.moveaxis(SAMPLES["x"], *axes))
    assert not np.array_equal(turned, SAMPLES["x"]) and turned.shape == SAMPLES["x"].shape


@pytest.mark.parametrize(
    ("tensors", "layouts"),
    [
        (spec("NCHW"), {"x": "NCHW"}),
        (spec("NHWC"), {}),
        (spec("NONE"), {"x": "NCHW"}),
        (spec("NHWC", "HB_DNN_IMG_TYPE_NV12"), {"x": "NCHW"}),
        (spec("NHWC"), {"y": "NCHW"}),
    ],
)
def test_everything_else_stays(tensors, layouts) -> None:
    assert orient_samples(SAMPLES, tensors, layouts)["x"] is SAMPLES["x"]


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        orient_samples(SAMPLES, spec("NHWC"), {"x": "CHW"})
    assert caught.value.reason == "SAMPLE_LAYOUT_INVALID"
