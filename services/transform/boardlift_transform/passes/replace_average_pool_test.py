import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

CASES = [
    ([3, 3], [1, 1], [1, 1, 1, 1], 0, 0),
    ([3, 3], [2, 2], [0, 0, 1, 1], 0, 0),
    ([3, 2], [2, 1], [1, 0, 1, 1], 0, 0),
    ([3, 3], [2, 2], [0, 0, 0, 0], 1, 0),
    ([3, 3], [2, 2], [1, 1, 1, 1], 1, 1),
]


@pytest.mark.parametrize(("kernel", "strides", "pads", "ceil", "include"), CASES)
@pytest.mark.parametrize("size", [8, 9])
def test_padded_pool_becomes_a_depthwise_convolution(
    kernel: list[int], strides: list[int], pads: list[int], ceil: int, include: int, size: int
) -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", [1, 4, size, size])])
    options = {
        "kernel_shape": kernel,
        "strides": strides,
        "pads": pads,
        "ceil_mode": ceil,
        "count_include_pad": include,
    }
    t = b.node("AveragePool", [t], **options)
    b.node("Flatten", [b.node("Sigmoid", [t])], "y")
    b.output("y", [1, "n"])
    run = run_one_pass(b.model(), "replace-average-pool")
    assert run.max_rel < 1e-6
    if any(pads) and not include:
        assert "AveragePool" not in run.operators


@pytest.mark.parametrize(("kernel", "stride", "after"), [(8, 1, "Conv"), (9, 2, "Conv"), (14, 1, "GlobalAveragePool")])
def test_a_wide_window_leaves_the_coarse_pool(kernel: int, stride: int, after: str) -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", [1, 4, 14, 14])])
    b.node("AveragePool", [t], "y", kernel_shape=[kernel, kernel], strides=[stride, stride])
    b.output("y", ["n", "c", "h", "w"])
    run = run_one_pass(b.model(), "replace-average-pool")
    assert run.operators == ["Relu", after] and run.max_rel < 1e-6


def test_an_inner_pool_is_left_alone() -> None:
    b = GraphBuilder(11)
    b.node("AveragePool", [b.input("x", [1, 4, 8, 8])], "y", kernel_shape=[2, 2], strides=[2, 2])
    b.output("y", [1, 4, 4, 4])
    assert run_one_pass(b.model(), "replace-average-pool").operators == ["AveragePool"]
