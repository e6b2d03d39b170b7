import itertools

import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass

COORDINATES = ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize(
    scale: float | list[int], shape: tuple[int, int], mode: str, coordinates: str, rounding: str = ""
) -> PassRun:
    b = GraphBuilder(11)
    x = b.input("x", [1, 3, *shape])
    roi = b.constant(np.zeros(0, np.float32))
    if isinstance(scale, list):
        inputs = [x, roi, b.constant(np.zeros(0, np.float32)), b.constant(np.asarray([1, 3, *scale], np.int64))]
    else:
        inputs = [x, roi, b.constant(np.asarray([1, 1, scale, scale], np.float32))]
    more = {"nearest_mode": rounding} if rounding else {}
    b.node("Relu", [b.node("Resize", inputs, mode=mode, coordinate_transformation_mode=coordinates, **more)], "y")
    b.output("y", None)
    return run_one_pass(b.model(), "settle-resize")


@pytest.mark.parametrize(("coordinates", "rounding"), list(itertools.product(COORDINATES, ROUNDINGS)))
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_nearest_keeps_its_rows_and_only_the_plain_form_is_left(coordinates: str, rounding: str, scale: int) -> None:
    run = resize(scale, (5, 4), "nearest", coordinates, rounding)
    assert run.max_rel == 0
    right = {("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"),
             ("pytorch_half_pixel", "round_prefer_floor"), ("pytorch_half_pixel", "round_prefer_ceil")}  # fmt: skip
    if scale > 2:
        assert (run.operators == ["Resize", "Relu"]) == ((coordinates, rounding) in right)
    if (coordinates, rounding) == ("half_pixel", "floor"):
        assert run.operators.count("Concat") == 2 and "MatMul" not in run.operators
    if (coordinates, rounding, scale) == ("align_corners", "floor", 4):
        assert run.operators == ["MatMul", "MatMul", "Relu"]


@pytest.mark.parametrize("scale", [3, 0.5])
def test_nearest_that_runs_on_the_cpu_stays(scale: float) -> None:
    assert resize(scale, (6, 4), "nearest", "half_pixel", "floor").operators == ["Resize", "Relu"]


@pytest.mark.parametrize(
    ("scale", "shape", "coordinates", "operators"),
    [
        (0.5, (6, 8), "half_pixel", ["AveragePool"]),
        (0.5, (7, 9), "half_pixel", ["Slice", "Slice", "AveragePool"]),
        (0.25, (9, 9), "half_pixel", ["Slice", "Slice", "AveragePool"]),
        (0.5, (7, 8), "asymmetric", ["Slice", "Slice"]),
        (1 / 3, (9, 9), "half_pixel", ["Slice", "Slice"]),
        (0.5, (7, 9), "align_corners", ["MatMul", "MatMul"]),
        (1.5, (7, 5), "half_pixel", ["MatMul", "MatMul"]),
        (1.5, (6, 4), "half_pixel", ["Resize"]),
        (2, (7, 5), "align_corners", ["Resize"]),
        ([5, 4], (7, 9), "half_pixel", ["Resize"]),
    ],
)
def test_linear_down_and_of_odd_sizes(
    scale: float | list[int], shape: tuple[int, int], coordinates: str, operators: list[str]
) -> None:
    run = resize(scale, shape, "linear", coordinates)
    assert run.operators == [*operators, "Relu"]
    assert run.max_rel < 1e-5
