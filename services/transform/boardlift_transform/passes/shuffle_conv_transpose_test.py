import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _run(
    kernel: list[int], group: int = 1, bias: bool = True, limits: dict[str, int] | None = None, **window: object
) -> PassRun:
    b = GraphBuilder(11)
    x = b.input("x", [2, 6, 5, 7])
    weights = [b.weight(6, 4, *kernel), *([b.weight(4 * group)] if bias else [])]
    b.node("ConvTranspose", [x, *weights], "y", group=group, **window)
    b.output("y")
    return run_one_pass(b.model(), "shuffle-conv-transpose", limits)


@pytest.mark.parametrize("group", [1, 2, 6])
@pytest.mark.parametrize(
    ("kernel", "window", "operators"),
    [
        ([2, 2], {"strides": [2, 2]}, ["Conv", "DepthToSpace"]),
        ([4, 4], {"strides": [2, 2], "pads": [1, 1, 1, 1]}, ["Conv", "DepthToSpace", "Slice"]),
        (
            [3, 3],
            {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
            ["Conv", "DepthToSpace", "Slice"],
        ),
        (
            [5, 2],
            {"strides": [3, 3], "pads": [2, 0, 1, 1], "output_padding": [2, 0]},
            ["Conv", "DepthToSpace", "Slice"],
        ),
        ([2, 3], {"strides": [4, 4], "output_padding": [3, 1]}, ["Conv", "DepthToSpace"]),
        ([3, 5], {"pads": [1, 2, 1, 2]}, ["Conv"]),
        ([3, 3], {"pads": [0, 2, 1, 0]}, ["Conv"]),
        ([6, 6], {"strides": [2, 2], "pads": [5, 4, 5, 5]}, ["Conv", "DepthToSpace", "Slice"]),
    ],
)
def test_it_becomes_a_conv_of_phases(
    kernel: list[int], window: dict[str, list[int]], operators: list[str], group: int
) -> None:
    for bias in (True, False):
        run = _run(kernel, group, bias, {"stride": 4}, **window)
        assert run.max_rel < 1e-6
        assert [op for op in run.operators if op != "Slice"] == [op for op in operators if op != "Slice"]


@pytest.mark.parametrize(
    "window",
    [
        {"strides": [2, 1]},
        {"strides": [3, 3]},
        {"strides": [2, 2], "dilations": [2, 2]},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
def test_other_forms_are_left_alone(window: dict[str, object]) -> None:
    assert _run([3, 3], **window).operators == ["ConvTranspose"]


def test_large_outputs_stay_where_they_would_be_shuffled() -> None:
    limits = {"elements": 100}
    assert _run([2, 2], limits=limits, strides=[2, 2]).operators == ["ConvTranspose"]
    assert _run([2, 2], limits=limits).operators == ["Conv"]
