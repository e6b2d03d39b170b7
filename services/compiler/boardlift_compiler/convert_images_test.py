import numpy as np
import pytest

from boardlift_compiler.convert_images import (
    nv12_to_yuv444,
    rgb_to_yuv444,
    to_quantized_input,
    to_simulator_input,
    yuv444_to_nv12,
)
from boardlift_compiler.read_model import TensorInfo
from boardlift_compiler.spec import InputSpec


@pytest.mark.parametrize(
    ("rgb", "full", "video"),
    [((0, 0, 0), (0, 128, 128), (16, 128, 128)), ((255, 255, 255), (255, 128, 128), (235, 128, 128)),
     ((255, 0, 0), (76, 85, 255), (81, 90, 240))],
)  # fmt: skip
def test_known_colours(rgb, full, video):
    pixel = np.array([[rgb]], np.uint8)
    assert tuple(rgb_to_yuv444(pixel)[0, 0]) == full
    assert tuple(rgb_to_yuv444(pixel, True)[0, 0]) == video


def test_nv12_holds_y_then_pairs():
    yuv = np.zeros((4, 6, 3), np.uint8)
    yuv[..., 0] = np.arange(24).reshape(4, 6)
    yuv[..., 1], yuv[..., 2] = 50, 200
    buffer = yuv444_to_nv12(yuv)
    assert buffer.size == 4 * 6 * 3 // 2
    assert buffer[24:].tolist() == [50, 200] * 6
    assert np.array_equal(nv12_to_yuv444(buffer, 4, 6), yuv)


def test_a_featuremap_passes_through():
    samples = np.ones((2, 1, 1, 4), np.float64)
    tensor = TensorInfo("x", "float32", (1, 1, 1, 4))
    assert to_quantized_input(samples, InputSpec("x"), tensor).dtype == np.float32
    assert to_simulator_input(samples[0], InputSpec("x")) is None


def test_rgb_for_nv12_becomes_shifted_yuv():
    images = np.full((2, 3, 4, 6), 255, np.uint8)
    spec = InputSpec("x", "rgb", "nv12")
    out = to_quantized_input(images, spec, TensorInfo("x", "int8", (1, 4, 6, 3)))
    assert out.shape == (2, 4, 6, 3)
    assert tuple(out[0, 0, 0]) == (127, 0, 0)
    buffer, is_image = to_simulator_input(images[0], spec)
    assert is_image
    assert buffer.size == 36


def test_bgr_for_rgb_swaps_and_keeps_the_layout():
    images = np.zeros((1, 3, 2, 2), np.uint8)
    images[:, 0] = 255
    out = to_quantized_input(images, InputSpec("x", "bgr", "rgb"), TensorInfo("x", "int8", (1, 3, 2, 2)))
    assert out.shape == (1, 3, 2, 2)
    assert (out[0, 2] == 127).all()
    assert (out[0, 0] == -128).all()
