import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("width", "kernel", "stride", "around"),
    [
        (160, 80, 16, []),  # all windows fit
        (165, 80, 16, ["Slice"]),  # a tail that no window reads
        (163, 33, 8, ["Pad"]),  # the last row is not whole
        (100, 4, 4, []),
        (103, 3, 10, ["Pad"]),  # a stride wider than the kernel
    ],
)
def test_the_stride_becomes_channels(width: int, kernel: int, stride: int, around: list[str], bias: bool) -> None:
    b = GraphBuilder(11)
    inputs = [b.input("x", [1, 1, 1, width]), b.weight(6, 1, 1, kernel), *([b.weight(6)] if bias else [])]
    b.node("Conv", inputs, "y", kernel_shape=[1, kernel], strides=[1, stride])
    b.output("y", [1, 6, 1, (width - kernel) // stride + 1])
    run = run_one_pass(b.model(), "fold-stride")
    assert run.operators == [*around, "Reshape", "Transpose", "Reshape", "Conv"]
    assert run.max_rel < 1e-5


@pytest.mark.parametrize(
    ("channels", "stride", "pads"), [(2, 8, [0, 0, 0, 0]), (1, 2, [0, 0, 0, 0]), (1, 8, [0, 4, 0, 4])]
)
def test_other_convolutions_stay(channels: int, stride: int, pads: list[int]) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, channels, 1, 64])
    b.node("Conv", [x, b.weight(6, channels, 1, 16)], "y", kernel_shape=[1, 16], strides=[1, stride], pads=pads)
    b.output("y", ["n", "c", "h", "w"])
    assert run_one_pass(b.model(), "fold-stride").operators == ["Conv"]
