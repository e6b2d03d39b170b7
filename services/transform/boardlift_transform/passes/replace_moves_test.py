import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

END = -(1 << 62)


@pytest.mark.parametrize(("start", "end", "step"), [(-1, END, -1), (4, 0, -2), (100, END, -3)])
def test_reversed_slice_becomes_gather(start: int, end: int, step: int) -> None:
    b = GraphBuilder(11)
    parts = [b.constant(np.asarray([v])) for v in (start, end, 2, step)]
    b.node("Relu", [b.node("Slice", [b.input("x", [1, 4, 6]), *parts])], "y")
    b.output("y", [1, 4, "n"])
    run = run_one_pass(b.model(), "replace-moves")
    assert run.operators == ["Gather", "Relu"]
    assert run.max_rel == 0


def test_reflecting_pad_becomes_gather_and_constant_pad_stays() -> None:
    b = GraphBuilder(11)
    t = b.node("Pad", [b.input("x", [1, 2, 6, 7]), b.constant([0, 0, 2, 3, 0, 0, 1, 0])], mode="reflect")
    b.node("Pad", [t, b.constant([0, 0, 1, 1, 0, 0, 1, 1])], "y")
    b.output("y", [1, 2, "h", "w"])
    run = run_one_pass(b.model(), "replace-moves")
    assert run.operators == ["Gather", "Gather", "Pad"]
    assert run.max_rel == 0


@pytest.mark.parametrize(("dilation", "operator"), [(2, "Gather"), (1, "Slice")])
def test_a_slice_behind_a_dilated_convolution_becomes_gather(dilation: int, operator: str) -> None:
    b = GraphBuilder(11)
    t = b.node("Conv", [b.input("x", [1, 2, 12, 5]), b.weight(2, 2, 3, 1)], dilations=[dilation, 1])
    t = b.node("Relu", [t])
    b.node("Slice", [t, b.constant([0]), b.constant([6]), b.constant([2])], "y")
    b.output("y", [1, 2, 6, 5])
    run = run_one_pass(b.model(), "replace-moves")
    assert run.operators == ["Conv", "Relu", operator]
    assert run.max_rel == 0


@pytest.mark.parametrize("shape", [[5], [1, 5], [1, 3, 5]])
def test_a_pad_of_low_rank_works_on_four_axes(shape: list[int]) -> None:
    b = GraphBuilder(11)
    amounts = [0] * (len(shape) - 1) + [2] + [1] + [0] * (len(shape) - 1)
    b.node("Pad", [b.input("x", shape), b.constant(amounts), b.constant(np.float32(-7))], "y")
    b.output("y", ["n"] * len(shape))
    run = run_one_pass(b.model(), "replace-moves")
    assert run.operators == ["Reshape", "Pad", "Reshape"]
    assert run.max_rel == 0
