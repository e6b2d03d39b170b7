import numpy as np
import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass

CHANNELS = 4


def _norm(b: GraphBuilder, x: str, factor: float = 0.3) -> str:
    rng = np.random.default_rng(3)
    parts = [
        rng.normal(factor, 0.1, CHANNELS),
        rng.normal(0, 1, CHANNELS),
        rng.normal(0, 1, CHANNELS),
        np.full(CHANNELS, 2),
    ]
    return b.node("BatchNormalization", [x, *(b.constant(p.astype(np.float32)) for p in parts)])


def _conv(b: GraphBuilder, x: str, kernel: list[int], group: int, bias: bool = True, **window: object) -> str:
    inputs = [x, b.weight(CHANNELS, CHANNELS // group, *kernel), *([b.weight(CHANNELS)] if bias else [])]
    return b.node("Conv", inputs, group=group, **window)


def _run(b: GraphBuilder, out: str) -> PassRun:
    b.node("Relu", [out], "y")
    b.output("y", None)
    return run_one_pass(b.model(), "merge-parallel-convs")


def _input(b: GraphBuilder) -> str:
    return b.node("Relu", [b.input("x", [1, CHANNELS, 9, 10])])


@pytest.mark.parametrize("group", [1, 2, 4])
def test_the_branches_of_repvgg_are_one_conv(group: int) -> None:
    b = GraphBuilder(13)
    x = _input(b)
    t = b.node("Add", [_conv(b, x, [1, 1], group), _conv(b, x, [3, 3], group, pads=[1] * 4)])
    run = _run(b, b.node("Add", [_norm(b, x), t]))
    assert run.operators == ["Relu", "Conv", "Relu"] and run.max_rel < 1e-6


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (([3, 3], {"strides": [2, 2], "pads": [1] * 4}), ([1, 1], {"strides": [2, 2]})),
        (([5, 3], {"pads": [2, 1, 2, 1]}), ([3, 3], {"pads": [1] * 4})),
        (([1, 3], {"pads": [0, 2, 0, 0]}), ([1, 1], {"dilations": [2, 2]})),
        (([3, 3], {"pads": [0, 0, 2, 2]}), ([1, 1], {})),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_a_smaller_kernel_takes_its_place_in_the_larger_one(
    one: tuple[list[int], dict[str, object]], two: tuple[list[int], dict[str, object]], bias: bool
) -> None:
    b = GraphBuilder(13)
    x = _input(b)
    run = _run(b, b.node("Add", [_conv(b, x, two[0], 1, bias, **two[1]), _conv(b, x, one[0], 1, **one[1])]))
    assert run.operators == ["Relu", "Conv", "Relu"] and run.max_rel < 1e-6


def _other_input(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_conv(b, x, [1, 1], 1), _conv(b, b.node("Neg", [x]), [1, 1], 1)])


def _read_twice(b: GraphBuilder, x: str) -> str:
    t = _conv(b, x, [1, 1], 1)
    return b.node("Mul", [b.node("Add", [t, _conv(b, x, [1, 1], 1)]), t])


def _crossed(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_conv(b, x, [3, 1], 1, pads=[1, 0, 1, 0]), _conv(b, x, [1, 3], 1, pads=[0, 1, 0, 1])])


def _other_groups(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_conv(b, x, [1, 1], 1), _conv(b, x, [1, 1], 2)])


def _dilated(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_conv(b, x, [3, 3], 1, pads=[2] * 4, dilations=[2, 2]), _conv(b, x, [1, 1], 1)])


def _residual(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_conv(b, x, [1, 1], 1), x])


def _two_norms(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_norm(b, x), _norm(b, x)])


def _broadcast(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_conv(b, x, [9, 10], 1), _conv(b, x, [1, 1], 1)])


def _strong_norm(b: GraphBuilder, x: str) -> str:
    return b.node("Add", [_conv(b, x, [3, 3], 1, pads=[1] * 4), _norm(b, x, 5.0)])


@pytest.mark.parametrize(
    "build",
    [_strong_norm, _other_input, _read_twice, _crossed, _other_groups, _dilated, _residual, _two_norms, _broadcast],
)
def test_what_is_no_sum_of_one_inputs_convs_stays(build: object) -> None:
    b = GraphBuilder(13)
    out = build(b, _input(b))  # type: ignore[operator]
    before = [n.op_type for n in b.nodes]
    run = _run(b, out)
    assert run.operators == [*before, "Relu"]


def test_weights_that_are_computed_stay() -> None:
    b = GraphBuilder(13)
    x, w = _input(b), b.input("w", [CHANNELS, CHANNELS, 1, 1])
    run = _run(b, b.node("Add", [b.node("Conv", [x, w]), _conv(b, x, [1, 1], 1)]))
    assert isinstance(run.model, onnx.ModelProto) and run.operators.count("Conv") == 2
