import math

import numpy as np
import onnx_ir as ir
import pytest

from boardlift_transform.axis_factors import Layout, Steps

Move = tuple[str, list[int]]


def follow(shape: list[int], moves: list[Move]) -> tuple[Layout | None, np.ndarray]:
    """The layout behind the moves, and the source's numbers moved by numpy."""
    layout, numbers = Layout.of(shape), np.arange(math.prod(shape)).reshape(shape)
    for kind, given in moves:
        numbers = numbers.reshape(given) if kind == "Reshape" else numbers.transpose(given)
        attributes = [] if kind == "Reshape" else [ir.AttrInt64s("perm", given)]
        node = ir.Node("", kind, [None], attributes)
        node.outputs[0].shape = ir.Shape(numbers.shape)
        if not layout.follow(node):
            return None, numbers
    return layout, numbers


def apply(steps: Steps, shape: list[int]) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape).reshape(steps.cut).transpose(steps.perm).reshape(steps.out)


@pytest.mark.parametrize(
    ("shape", "moves", "count"),
    [
        ([1, 8, 1, 5], [("Transpose", [0, 2, 3, 1]), ("Reshape", [1, 5, 4, 2]), ("Transpose", [0, 2, 1, 3])], 2),
        ([1, 8, 1, 5], [("Transpose", [0, 2, 3, 1]), ("Reshape", [1, 5, 4, 2]), ("Transpose", [0, 2, 3, 1])], 1),
        ([1, 4, 5, 2], [("Transpose", [0, 2, 1, 3]), ("Reshape", [1, 1, 5, 8]), ("Transpose", [0, 3, 1, 2])], 2),
        ([1, 3, 2, 2], [("Reshape", [1, 1, 3, 4]), ("Transpose", [0, 1, 3, 2]), ("Transpose", [0, 2, 1, 3])], 2),
        ([1, 1, 6, 5], [("Reshape", [6, 5]), ("Transpose", [1, 0]), ("Reshape", [1, 5, 1, 6])], 1),
        ([1, 2, 3, 4], [("Transpose", [0, 2, 3, 1]), ("Transpose", [0, 3, 1, 2])], 0),
        ([5, 1, 8], [("Reshape", [5, 4, 2]), ("Transpose", [1, 0, 2])], 2),
        ([1, 6, 4], [("Reshape", [1, 2, 3, 2, 2]), ("Reshape", [1, 24, 1])], 1),
    ],
)
def test_the_shortest_moves_do_what_the_chain_does(shape: list[int], moves: list[Move], count: int) -> None:
    layout, numbers = follow(shape, moves)
    assert layout is not None
    steps = layout.steps()
    assert steps is not None and steps.count == count
    assert (apply(steps, shape) == numbers).all()


@pytest.mark.parametrize("seed", range(40))
def test_random_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, sizes, moves = [1, 12, 1, 10], [[1, 12, 1, 10], [1, 3, 4, 10], [1, 12, 2, 5], [1, 1, 120, 1]], []
    for _ in range(5):
        now = follow(shape, moves)[1].shape
        perm = [0, *(1 + rng.permutation(len(now) - 1))]
        free = [s for s in sizes if math.prod(s) == math.prod(now)]
        moves.append(
            ("Transpose", [int(p) for p in perm]) if rng.random() < 0.5 else ("Reshape", free[rng.integers(4)])
        )
    layout, numbers = follow(shape, moves)
    steps = layout.steps() if layout is not None else None
    if steps is not None:
        assert (apply(steps, shape) == numbers).all()
        assert steps.count <= 3


def test_an_axis_that_is_cut_unevenly_is_not_followed() -> None:
    layout, _ = follow([1, 6, 10], [("Transpose", [0, 2, 1]), ("Reshape", [1, 4, 15])])
    assert layout is None


def test_five_axes_have_no_steps() -> None:
    layout, _ = follow([1, 16, 3], [("Reshape", [1, 2, 2, 4, 3]), ("Transpose", [0, 3, 2, 4, 1])])
    assert layout is not None and layout.steps() is None


def test_a_copy_is_cut_apart_from_the_first() -> None:
    layout, _ = follow([1, 8], [])
    assert layout is not None
    other = layout.copy()
    node = ir.Node("", "Reshape", [None])
    node.outputs[0].shape = ir.Shape([1, 2, 4])
    assert other.follow(node)
    assert [len(a) for a in layout.source] == [0, 1] and [len(a) for a in other.source] == [0, 2]
