import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _pads(run: PassRun) -> list[list[int]]:
    return [list(a.ints) for n in run.model.graph.node for a in n.attribute if a.name == "pads"]


def _balanced(run: PassRun) -> bool:
    return all(p[2] <= p[0] and p[3] <= p[1] for p in _pads(run))


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "ceil"),
    [
        ([3, 3], [2, 2], [0, 0, 1, 1], 0),
        ([2, 2], [1, 1], [0, 0, 1, 1], 0),
        ([3, 3], [2, 2], [0, 0, 0, 0], 1),
        ([2, 2], [2, 2], [0, 0, 0, 0], 1),
        ([3, 3], [2, 2], [0, 1, 1, 1], 1),
        ([3, 3], [2, 2], [1, 1, 1, 1], 0),
    ],
)
@pytest.mark.parametrize("size", [8, 9])
def test_pools(kernel: list[int], strides: list[int], pads: list[int], ceil: int, size: int) -> None:
    b = GraphBuilder(11)
    t = b.node(
        "MaxPool", [b.input("x", [1, 3, size, size])], kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=ceil
    )
    b.node("Flatten", [b.node("Relu", [b.node("Add", [t, b.constant(np.float32(5))])])], "y")
    b.output("y", [1, "n"])
    run = run_one_pass(b.model(), "balance-padding")
    assert _balanced(run)
    assert run.max_rel == 0


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "dilations"),
    [
        ([3, 3], [1, 1], [0, 1, 2, 1], [1, 1]),
        ([3, 3], [2, 2], [0, 0, 1, 1], [1, 1]),
        ([5, 5], [1, 1], [2, 2, 3, 3], [1, 1]),
        ([1, 1], [1, 1], [0, 0, 1, 1], [1, 1]),
        ([3, 3], [1, 1], [1, 1, 2, 2], [2, 2]),
    ],
)
def test_convolutions(kernel: list[int], strides: list[int], pads: list[int], dilations: list[int]) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 3, 8, 8])
    w = b.weight(4, 3, *kernel)
    t = b.node("Conv", [x, w, b.weight(4)], kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations)
    b.node("Flatten", [t], "y")
    b.output("y", [1, "n"])
    run = run_one_pass(b.model(), "balance-padding")
    assert _balanced(run)
    assert run.max_rel < 1e-6


def test_a_zero_pad_before_the_convolution_goes_inside() -> None:
    b = GraphBuilder(11)
    t = b.node("Pad", [b.input("x", [1, 3, 8, 8]), b.constant([0, 0, 0, 0, 0, 0, 1, 1])])
    t = b.node("Conv", [t, b.weight(4, 3, 3, 3)], strides=[2, 2])
    b.node("Relu", [t], "y")
    b.output("y", [1, 4, 4, 4])
    run = run_one_pass(b.model(), "balance-padding")
    assert run.operators == ["Conv", "Relu"] and _balanced(run)
    assert run.max_rel < 1e-6


def test_padding_that_no_window_reaches_is_trimmed() -> None:
    b = GraphBuilder(11)
    b.node("Conv", [b.input("x", [1, 3, 8, 8]), b.weight(4, 3, 2, 2)], "y", strides=[2, 2], pads=[0, 0, 1, 1])
    b.output("y", [1, 4, 4, 4])
    run = run_one_pass(b.model(), "balance-padding")
    assert _pads(run) == [[0, 0, 0, 0]]
    assert run.max_rel == 0
