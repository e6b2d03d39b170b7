"""A picture becomes the same bytes for the board as for the simulators: else a board never matches its simulation."""

import numpy as np
import pytest
from boardlift.v1 import board_agent_pb2
from boardlift_board_agent.colour_tensors import colour_tensors
from boardlift_board_agent.feed_model import input_bytes
from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_compiler.convert_images import to_runtime_pixels, to_simulator_input
from boardlift_compiler.spec import InputSpec

HEIGHT, WIDTH = 128, 160


def _halfway() -> np.ndarray:
    """Colours whose luma lies halfway between two numbers, where one last bit decides how it is rounded."""
    red, green, blue = np.indices((256, 256, 256), np.int32).reshape(3, -1)
    ties = np.flatnonzero((299 * red + 587 * green + 114 * blue) % 1000 == 500)
    chosen = np.random.default_rng(5).choice(ties, HEIGHT * WIDTH)
    return np.stack([red[chosen], green[chosen], blue[chosen]]).reshape(3, HEIGHT, WIDTH)


def _fed(kind: str, sample: np.ndarray, colour: str = "", space_and_range: str = "") -> np.ndarray:
    valid, name = (1, len(sample), HEIGHT, WIDTH), f"HB_DNN_IMG_TYPE_{kind}"
    size = HEIGHT * WIDTH * 3 // 2 if kind == "NV12" else sample.size
    spec = TensorSpec("image", True, valid, name, size, valid, (0, 0, 0, 0), layout="HB_DNN_LAYOUT_NCHW")
    form = board_agent_pb2.PictureForm(colour=colour, space_and_range=space_and_range)
    (coloured,) = colour_tensors((spec,), {"image": form})
    return np.frombuffer(input_bytes(sample, coloured), np.uint8)


@pytest.mark.parametrize("name", ["halfway", "noise", "resized", "beyond"])
def test_board_and_simulators_get_the_same_pixels(name: str) -> None:
    rng = np.random.default_rng(4)
    samples = {
        "halfway": _halfway(),
        "noise": rng.integers(0, 256, (3, HEIGHT, WIDTH)),
        "resized": rng.random((3, HEIGHT, WIDTH)) * 255,
        "beyond": rng.random((3, HEIGHT, WIDTH)) * 300 - 20,
    }
    sample = samples[name].astype(np.float32)
    found = to_simulator_input(sample[None], InputSpec("image", "rgb", "nv12"))
    assert found is not None
    np.testing.assert_array_equal(_fed("NV12", sample), found[0])
    for kind, fed in (("YUV444", "yuv444"), ("RGB", "rgb"), ("BGR", "bgr")):
        pixels = to_runtime_pixels(sample[None], InputSpec("image", "rgb", fed))
        np.testing.assert_array_equal(_fed(kind, sample), np.moveaxis(pixels, -1, 0).ravel())


@pytest.mark.parametrize("train", ["rgb", "bgr", "yuv444"])
@pytest.mark.parametrize("space_and_range", ["regular", "bt601_video"])
def test_a_model_of_other_colours_or_range_gets_the_same_pixels(train: str, space_and_range: str) -> None:
    sample = np.random.default_rng(6).integers(0, 256, (3, HEIGHT, WIDTH)).astype(np.float32)
    asked = InputSpec("image", train, "nv12", space_and_range=space_and_range)
    if (train, space_and_range) != ("yuv444", "bt601_video"):  # the tool does not take that pair
        found = to_simulator_input(sample[None], asked)
        assert found is not None
        np.testing.assert_array_equal(_fed("NV12", sample, train, space_and_range), found[0])
    if space_and_range == "regular":
        for kind, fed in (("YUV444", "yuv444"), ("RGB", "rgb"), ("BGR", "bgr")):
            if train == "yuv444" and kind != "YUV444":
                continue
            pixels = to_runtime_pixels(sample[None], InputSpec("image", train, fed))
            np.testing.assert_array_equal(_fed(kind, sample, train), np.moveaxis(pixels, -1, 0).ravel())


def test_a_grey_picture_is_its_own_luma() -> None:
    sample = np.random.default_rng(7).random((1, HEIGHT, WIDTH)).astype(np.float32) * 255
    found = to_simulator_input(sample[None], InputSpec("image", "gray", "gray"))
    assert found is not None
    np.testing.assert_array_equal(_fed("Y", sample, "gray"), found[0])
