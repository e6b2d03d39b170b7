"""Resize forms and Clips that the tool builds wrong without a word: before and after the passes."""

from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.toolchain_test import closed, error_of

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]


def resized(scale: float, size: tuple[int, int], **attributes: Any) -> onnx.ModelProto:
    b = GraphBuilder(11, 7, seed=1)
    x = b.node("Conv", [b.input("x", [1, 8, *size]), b.weight(8, 8, 1, 1), b.weight(8)])
    inputs = [x, b.constant(np.zeros(0, np.float32)), b.constant(np.asarray([1, 1, scale, scale], np.float32))]
    return closed(b, b.node("Resize", inputs, **attributes), 8)


@pytest.mark.parametrize(
    "model",
    [
        resized(2, (6, 8), mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="floor"),
        resized(4, (6, 8), mode="nearest", coordinate_transformation_mode="align_corners", nearest_mode="floor"),
        resized(0.5, (7, 9), mode="linear", coordinate_transformation_mode="half_pixel"),
    ],
    ids=["shifted", "corners", "odd"],
)
def test_a_resize_of_wrong_rows_is_right_after_the_pass(tool: Any, model: onnx.ModelProto) -> None:
    before, differing = error_of(tool, model, transform(model, skip_passes=["settle-resize"]).model, int16=False)
    assert before > 0.15 and differing == 0  # code and quantised model agree: both are wrong
    after, differing = error_of(tool, model, transform(model).model, int16=False)
    assert after < 0.05 and differing == 0


def behind(front: str, low: float, high: float) -> onnx.ModelProto:
    b = GraphBuilder(11, 7, seed=1)
    x = b.node("Conv", [b.input("x", [1, 8, 6, 8]), b.weight(8, 8, 1, 1, scale=3.0), b.weight(8)])
    x = b.node("Clip", [x, "", b.constant(np.float32(0.8))]) if front == "Clip" else b.node(front, [x], alpha=0.1)
    x = b.node("Clip", [x, b.constant(np.float32(low)), b.constant(np.float32(high))])
    return closed(b, x, 8)


@pytest.mark.parametrize("model", [behind("Clip", -1, 1), behind("LeakyRelu", -0.5, 0.5)], ids=["clip", "leaky"])
def test_a_clip_behind_a_table_of_one_threshold_clips_after_the_pass(tool: Any, model: onnx.ModelProto) -> None:
    before, _ = error_of(tool, model, transform(model, skip_passes=["split-clip"]).model, int16=False)
    after, differing = error_of(tool, model, transform(model).model, int16=False)
    assert after < before / 2 and differing == 0
