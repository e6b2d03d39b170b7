from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from boardlift.datasets import ImageOptions, SplitRequest, build_from_images
from boardlift.errors import InvalidInputError


@pytest.fixture
def folder(tmp_path):
    for index in range(4):
        pixels = np.zeros((2, 3, 3), np.uint8)
        pixels[..., 0], pixels[..., 2] = 10 + index, 200
        Image.fromarray(pixels).save(tmp_path / f"{index}.png")
    return tmp_path


def test_layout_colour_mean_and_scale_are_applied(folder):
    rgb = build_from_images(folder, ImageOptions("x", 2, 3)).arrays["x"]
    bgr = build_from_images(folder, ImageOptions("x", 2, 3, layout="NHWC", color="bgr")).arrays["x"]
    gray = build_from_images(folder, ImageOptions("x", 2, 3, color="gray")).arrays["x"]
    scaled = build_from_images(folder, ImageOptions("x", 2, 3, mean=(10, 0, 0), scale=(0.5,))).arrays["x"]
    assert rgb.shape == (4, 3, 2, 3) and rgb[1, :, 0, 0].tolist() == [11, 0, 200]
    assert bgr.shape == (4, 2, 3, 3) and bgr[1, 0, 0].tolist() == [200, 0, 11]
    assert gray.shape == (4, 1, 2, 3)
    assert scaled[1, :, 0, 0].tolist() == [0.5, 0, 100]


def test_other_sizes_are_refused_unless_resizing_is_allowed(folder):
    with pytest.raises(InvalidInputError, match=r"IMAGE_SIZE.* is 2x3 \(height x width\), not 4x5") as refused:
        build_from_images(folder, ImageOptions("x", 4, 5))
    assert "--resize" in refused.value.remedy
    dataset = build_from_images(folder, ImageOptions("x", 4, 4, resize=True), SplitRequest(2, 2))
    assert dataset.arrays["x"].shape == (4, 3, 4, 4) and dataset.split == (2, 2)


def test_broken_pictures_wrong_options_and_empty_folders_are_refused(folder, tmp_path):
    with pytest.raises(InvalidInputError, match="DATASET_INVALID"):
        build_from_images(folder, ImageOptions("x", 2, 3, color="cmyk"))
    with pytest.raises(InvalidInputError, match="NO_IMAGES"):
        build_from_images(tmp_path / "none", ImageOptions("x", 2, 3))
    (folder / "9.png").write_bytes(b"no picture")
    with pytest.raises(InvalidInputError, match="IMAGE_UNREADABLE"):
        build_from_images(folder, ImageOptions("x", 2, 3))


def test_a_folder_that_is_not_there_is_not_called_empty(folder):
    for path, said in [(folder / "absent", "absent is not there"), (folder / "0.png", r"0\.png is a file, no folder")]:
        with pytest.raises(InvalidInputError, match=said):
            build_from_images(path, ImageOptions("x", 2, 3))
