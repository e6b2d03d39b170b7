"""A picture becomes the same bytes for the board as for the simulators: else a board never matches its simulation."""

import numpy as np
import pytest
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


def _fed(kind: str, sample: np.ndarray) -> np.ndarray:
    valid, name = (1, 3, HEIGHT, WIDTH), f"HB_DNN_IMG_TYPE_{kind}"
    size = HEIGHT * WIDTH * 3 // (2 if kind == "NV12" else 1)
    spec = TensorSpec("image", True, valid, name, size, valid, (0, 0, 0, 0), layout="HB_DNN_LAYOUT_NCHW")
    return np.frombuffer(input_bytes(sample, spec), np.uint8)


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
