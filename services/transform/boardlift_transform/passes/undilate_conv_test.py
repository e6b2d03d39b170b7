import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _run(kernel: list[int], strides: list[int], dilations: list[int], group: int = 1, **parameters: int) -> PassRun:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 15, 16])
    window = {"strides": strides, "dilations": dilations, "pads": [1, 2, 0, 3], "group": group}
    b.node("Conv", [x, b.weight(4, 4 // group, *kernel), b.weight(4)], "y", **window)
    b.output("y")
    return run_one_pass(b.model(), "undilate-conv", parameters)


def _dilations(run: PassRun) -> list[int]:
    return next(list(a.ints) for n in run.model.graph.node for a in n.attribute if a.name == "dilations")


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations"), [([3, 2], [2, 1], [2, 3]), ([3, 3], [2, 2], [3, 1]), ([1, 3], [1, 2], [2, 2])]
)
def test_strided_dilations_go(kernel: list[int], strides: list[int], dilations: list[int], group: int) -> None:
    run = _run(kernel, strides, dilations, group)
    assert _dilations(run) == [1, 1] and run.max_rel < 1e-6


def test_a_dilation_of_one_tap_goes_and_others_stay_unless_asked() -> None:
    assert _dilations(_run([1, 3], [1, 1], [2, 2])) == [1, 2]
    assert _dilations(_run([3, 3], [1, 1], [2, 2])) == [2, 2]
    assert _dilations(_run([3, 3], [1, 1], [2, 2], always=1)) == [1, 1]
    assert _dilations(_run([3, 3], [2, 2], [5, 6])) == [5, 6]


@pytest.mark.parametrize(
    ("behind", "dilations"), [(["Relu", "Slice"], [1, 1]), (["Conv", "Slice"], [2, 2]), ([], [2, 2])]
)
def test_a_dilation_goes_where_a_slice_follows_before_the_next_layer(behind: list[str], dilations: list[int]) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 15, 16])
    t = b.node("Conv", [x, b.weight(4, 4, 3, 3)], dilations=[2, 2])
    for op in behind:
        more = {"Conv": [b.weight(4, 4, 1, 1)], "Slice": [b.constant([1]), b.constant([5]), b.constant([2])]}
        t = b.node(op, [t, *more.get(op, [])])
    b.node("Abs", [t], "y")
    b.output("y", None)
    run = run_one_pass(b.model(), "undilate-conv")
    assert _dilations(run) == dilations and run.max_rel < 1e-6
