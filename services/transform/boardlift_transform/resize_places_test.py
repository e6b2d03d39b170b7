import numpy as np
import pytest

from boardlift_transform.resize_places import even_steps, linear_weights, nearest_rows, places, shift_of


def rows(mode: str, rounding: str, scale: int) -> list[int]:
    place = places(mode, 3, 3 * scale, scale)
    assert place is not None
    return nearest_rows(rounding, place, 3).tolist()


def test_nearest_by_two() -> None:
    assert rows("asymmetric", "floor", 2) == rows("half_pixel", "round_prefer_floor", 2) == [0, 0, 1, 1, 2, 2]
    assert rows("half_pixel", "floor", 2) == [0, 0, 0, 1, 1, 2]
    assert rows("asymmetric", "ceil", 2) == [0, 1, 1, 2, 2, 2]
    assert places("tf_crop_and_resize", 3, 6, 2) is None


@pytest.mark.parametrize(
    ("taken", "shift"), [([0, 0, 1, 1], 0), ([0, 0, 0, 1], -1), ([0, 1, 1, 1], 1), ([1, 0, 0, 1], None)]
)
def test_the_smallest_shift_of_a_repetition(taken: list[int], shift: int | None) -> None:
    assert shift_of(np.asarray(taken), 2, 2) == shift


@pytest.mark.parametrize(
    ("mode", "size", "scale", "expected"),
    [("half_pixel", 7, 0.5, (0, 2, 2)), ("half_pixel", 9, 1 / 3, (1, 3, 1)), ("asymmetric", 7, 0.5, (0, 2, 1)),
     ("align_corners", 7, 0.5, (0, 3, 1)), ("half_pixel", 8, 0.75, None), ("half_pixel", 8, 2, None)],
)  # fmt: skip
def test_even_steps(mode: str, size: int, scale: float, expected: tuple[int, int, int] | None) -> None:
    place = places(mode, size, int(size * scale), np.float32(scale))
    assert place is not None and even_steps(place, size) == expected


def test_weights_sum_to_one_and_repeat_the_edge() -> None:
    place = places("half_pixel", 3, 6, 2)
    assert place is not None
    weights = linear_weights(place, 3)
    assert weights[:2].tolist() == [[1, 0, 0], [0.75, 0.25, 0]] and np.allclose(weights.sum(axis=1), 1)
