"""Samples become the bytes of the compiled input, or are refused with the reason."""

import numpy as np
import pytest
from boardlift.errors import InvalidInputError

from boardlift_board_agent.feed_model import input_bytes
from boardlift_board_agent.tensor_spec import TensorSpec

RED = np.zeros((3, 4, 6), np.float32)
RED[0] = 255


def picture(kind: str, layout: str = "NCHW") -> TensorSpec:
    valid = (1, 3, 4, 6) if layout == "NCHW" else (1, 4, 6, 3)
    valid = (1, 1, 4, 6) if kind == "Y" else valid
    size = 36 if kind == "NV12" else int(np.prod(valid))
    return TensorSpec(
        "x", True, valid, f"HB_DNN_IMG_TYPE_{kind}", size, valid, (0, 0, 0, 0), layout=f"HB_DNN_LAYOUT_{layout}"
    )


def tensor(valid: tuple[int, ...] = (1, 3, 2, 2)) -> TensorSpec:
    return TensorSpec("x", True, valid, "HB_DNN_TENSOR_TYPE_F32", 4 * int(np.prod(valid)))


def test_dimensions_of_one_may_differ() -> None:
    sample = np.arange(12, dtype=np.float32)
    spec = TensorSpec("x", True, (1, 12, 1, 1), "HB_DNN_TENSOR_TYPE_F32", 48)
    assert input_bytes(sample, spec) == sample.tobytes()


def test_nhwc_samples_for_an_nchw_input_are_refused_not_reshaped() -> None:
    with pytest.raises(InvalidInputError) as caught:
        input_bytes(np.zeros((2, 2, 3), np.float32), tensor())
    assert caught.value.reason == "SAMPLE_SHAPE_WRONG"


@pytest.mark.parametrize(
    ("kind", "first", "layout"),
    [
        ("RGB", [255, 0, 0], "NCHW"),
        ("RGB", [255, 0, 0], "NHWC"),
        ("BGR", [0, 0, 255], "NCHW"),
        ("BGR", [0, 0, 255], "NHWC"),
        ("YUV444", [76, 85, 255], "NHWC"),
        ("Y", [76], "NCHW"),
    ],
)
def test_red_in_every_form(kind: str, first: list[int], layout: str) -> None:
    spec = picture(kind, layout)
    pixels = np.frombuffer(input_bytes(RED, spec), np.uint8).reshape(spec.valid)
    got = pixels[0, :, 0, 0] if layout == "NCHW" else pixels[0, 0, 0]
    assert got.tolist() == first


def test_red_as_nv12() -> None:
    data = np.frombuffer(input_bytes(RED, picture("NV12")), np.uint8)
    assert set(data[:24]) == {76}
    assert data[24:].reshape(-1, 2)[0].tolist() == [85, 255]


def test_bytes_of_the_right_size_pass_through() -> None:
    raw = np.arange(36, dtype=np.uint8)
    assert input_bytes(raw, picture("NV12")) == raw.tobytes()


def test_other_picture_types_are_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        input_bytes(RED, picture("NV21"))
    assert caught.value.reason == "PICTURE_UNSUPPORTED"
