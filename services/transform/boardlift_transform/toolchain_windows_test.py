"""Windows that the tool compiles to wrong code without a word, or not at all: before and after the passes."""

from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.toolchain_test import between_convs, closed, error_of, samples_of

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]

CURES = ["balance-padding", "buffer-max-pool"]


def leading_pool(before: str = "", **attributes: Any) -> onnx.ModelProto:
    """A pool of the model's input, directly or behind one operator."""
    b = GraphBuilder(11, 7, seed=1)
    x = b.input("x", [1, 16, 12, 14])
    if before:
        x = b.node(before, [x, x] if before == "Concat" else [x], **({"axis": 2} if before == "Concat" else {}))
    return closed(b, b.node("MaxPool", [x], **attributes), 16)


@pytest.mark.parametrize(
    "model",
    [
        leading_pool(kernel_shape=[3, 3]),
        leading_pool(kernel_shape=[2, 2], strides=[2, 2]),
        leading_pool("Concat", kernel_shape=[1, 3]),
        between_convs("AveragePool", kernel_shape=[4, 5], pads=[3, 2, 0, 3], count_include_pad=1),
        between_convs("AveragePool", kernel_shape=[7, 3], pads=[1, 2, 2, 1]),
    ],
    ids=["input", "strided", "concat", "counted", "depthwise"],
)
def test_int16_code_that_is_wrong_without_a_word_equals_its_simulation_after_the_pass(
    tool: Any, model: onnx.ModelProto
) -> None:
    assert error_of(tool, model, transform(model, skip_passes=CURES).model, int16=True)[1] > 0
    error, differing = error_of(tool, model, transform(model).model, int16=True)
    assert differing == 0 and error < 0.01


def test_code_of_a_gather_dies_in_the_simulator_and_runs_after_the_pass(tool: Any) -> None:
    model = between_convs("Gather", [3, 1, 0, 2], axis=2, channels=8, size=12)
    with pytest.raises(AssertionError, match="hbdk-sim"):
        error_of(tool, model, model, int16=False)
    error, differing = error_of(tool, model, transform(model).model, int16=False)
    assert differing == 0 and error < 0.05


def _strided(op: str, weight: list[int], **window: Any) -> onnx.ModelProto:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Conv", [b.input("x", [1, 8, 12, 12]), b.weight(8, 8, 3, 3), b.weight(8)], pads=[1, 1, 1, 1])
    return closed(b, b.node(op, [t, b.weight(*weight, scale=0.2), b.weight(8)], **window), 8)


@pytest.mark.parametrize(
    "model",
    [
        _strided("Conv", [8, 8, 3, 3], strides=[2, 2], dilations=[2, 2], pads=[2, 1, 0, 3]),
        _strided("ConvTranspose", [8, 8, 2, 2], strides=[3, 3], pads=[0, 0, 1, 0]),
    ],
    ids=["dilated", "transposed"],
)
def test_what_fell_to_the_cpu_and_failed_there_stays_on_the_bpu_after_the_pass(
    tool: Any, model: onnx.ModelProto
) -> None:
    assert tool.compile(model, samples_of(model)).exit_code == 255
    made = transform(model).model
    error, differing = error_of(tool, model, made, int16=False)
    assert differing == 0 and error < 0.05
    assert not tool.check(made).on_cpu


def _clipped(reader: str) -> onnx.ModelProto:
    """A Conv of twice the range that its Clip leaves, read by a model output, a Concat or a Sigmoid."""
    b = GraphBuilder(11, 7, seed=1)
    x = b.input("x", [1, 8, 10, 12])
    t = b.node("Conv", [x, b.weight(8, 8, 1, 1, scale=0.7), b.weight(8)])
    t = b.node("Clip", [t, b.constant(np.float32(-1)), b.constant(np.float32(1))], "" if reader else "y")
    if not reader:
        b.output("y", [1, 8, 10, 12])
        return b.model()
    wide = b.node("Conv", [x, b.weight(8, 8, 1, 1, scale=3.0), b.weight(8)])
    t = b.node("Concat", [t, wide], axis=1) if reader == "Concat" else b.node(reader, [t])
    b.node("Conv", [t, b.weight(8, 16 if reader == "Concat" else 8, 1, 1), b.weight(8)], "y")
    b.output("y", [1, 8, 10, 12])
    return b.model()


@pytest.mark.parametrize(
    ("model", "int16", "skip", "right", "wrong"),
    [
        (_clipped(""), True, "split-clip", 0.05, 1.0),
        (_clipped("Concat"), False, "split-clip", 0.04, 0.08),
        (between_convs("HardSigmoid", channels=8, size=12), False, "decompose-activation", 0.02, 0.03),
        (between_convs("Selu", channels=8, size=12, alpha=1.2, gamma=1.3), False, "decompose-activation", 0.04, 0.08),
    ],
    ids=["clip-output", "clip-concat", "hard-sigmoid", "selu"],
)
def test_integers_that_forget_a_constant_without_a_word_keep_it_after_the_pass(
    tool: Any, model: onnx.ModelProto, int16: bool, skip: str, right: float, wrong: float
) -> None:
    assert error_of(tool, model, transform(model, skip_passes=[skip]).model, int16)[0] > wrong
    error, differing = error_of(tool, model, transform(model).model, int16)
    assert differing == 0 and error < right


def test_code_of_a_slice_behind_a_dilated_conv_equals_its_simulation_after_the_pass(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    x = b.input("x", [1, 8, 12, 14])
    t = b.node("Conv", [x, b.weight(8, 8, 3, 3), b.weight(8)], dilations=[3, 3], pads=[3, 3, 3, 3])
    t = b.node("Slice", [b.node("Relu", [t]), b.constant([0]), b.constant([7]), b.constant([3])])
    model = closed(b, t, 8)
    error, differing = error_of(tool, model, transform(model).model, int16=False)
    assert differing == 0 and error < 0.04


def test_an_add_behind_a_grouped_conv_transpose_is_folded_wrongly_and_right_by_the_pass(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Conv", [b.input("x", [1, 8, 10, 12]), b.weight(8, 8, 1, 1), b.weight(8)])
    t = b.node("ConvTranspose", [t, b.weight(8, 4, 2, 2, scale=0.5)], strides=[2, 2], group=2)
    t = b.node("Add", [t, b.constant(np.linspace(-2, 2, 8, dtype=np.float32).reshape(8, 1, 1))])
    model = closed(b, t, 8)
    assert error_of(tool, model, transform(model, skip_passes=["fold-conv-transpose"]).model, int16=False)[0] > 0.1
    error, differing = error_of(tool, model, transform(model).model, int16=False)
    assert differing == 0 and error < 0.04


def test_a_mask_that_drowns_the_scores_leaves_them_after_the_pass(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Conv", [b.input("x", [1, 8, 10, 10]), b.weight(8, 8, 1, 1), b.weight(8)])
    mask = np.triu(np.full((10, 10), -1e9, np.float32), 1)
    model = closed(b, b.node("Softmax", [b.node("Add", [t, b.constant(mask)])], axis=3), 8)
    assert error_of(tool, model, transform(model, skip_passes=["tame-constants"]).model, int16=True)[0] > 0.2
    error, differing = error_of(tool, model, transform(model).model, int16=True)
    assert differing == 0 and error < 0.05


def test_slopes_off_the_channels_are_refused_only_before_the_pass(tool: Any) -> None:
    model = between_convs("PRelu", np.linspace(0.05, 0.6, 12, dtype=np.float32), channels=8, size=12)
    assert tool.check(model).exit_code == 255
    error, differing = error_of(tool, model, transform(model).model, int16=False)
    assert differing == 0 and error < 0.04


@pytest.mark.parametrize(("rate", "on_cpu"), [(12, []), (24, ["Conv"])])
def test_a_rate_past_the_map_is_one_tap_on_the_bpu_and_int16(tool: Any, rate: int, on_cpu: list[str]) -> None:
    model = between_convs("Conv", np.eye(16)[:, :, None, None].repeat(3, 2).repeat(3, 3).astype(np.float32), size=8,
                          dilations=[rate] * 2, pads=[rate] * 4)  # fmt: skip
    plain = transform(model, skip_passes=["drop-padding-taps"]).model
    assert tool.check(plain).on_cpu == on_cpu
    result = transform(model).model
    after = tool.check(result)
    assert not after.on_cpu and len(after.subgraphs) == 1
    before = error_of(tool, model, plain, int16=True)[0]
    error, differing = error_of(tool, model, result, int16=True)
    assert differing == 0 and error < 0.012 and (on_cpu or error < before)


def test_a_strided_depthwise_layer_in_front_of_a_transposed_one_ends_the_compiler_in_int16(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Conv", [b.input("x", [1, 8, 24, 26]), b.weight(8, 8, 3, 3), b.weight(8)], pads=[1, 1, 1, 1])
    strided = b.node("Conv", [t, b.weight(8, 1, 3, 3)], group=8, pads=[1, 1, 1, 1], strides=[2, 2])
    b.node("ConvTranspose", [strided, b.weight(8, 4, 3, 3)], "y", kernel_shape=[3, 3], strides=[2, 1])
    b.output("y", [1, 4, 25, 15])
    model = b.model()
    c = GraphBuilder(11, 7, seed=1)  # what keep-int16 wrote before it looked behind the layer
    t = c.node("Conv", [c.input("x", [1, 8, 24, 26]), c.weight(8, 8, 3, 3), c.weight(8)], pads=[1, 1, 1, 1])
    whole = c.node("Conv", [t, c.weight(8, 1, 3, 3)], group=8, pads=[1, 1, 1, 1])
    bounds = [c.constant(v) for v in ([0, 0], [24, 26], [2, 3], [2, 2])]
    c.node("ConvTranspose", [c.node("Slice", [whole, *bounds]), c.weight(8, 4, 3, 3)], "y", kernel_shape=[3, 3],
           strides=[2, 1])  # fmt: skip
    c.output("y", [1, 4, 25, 15])
    sliced = c.model()
    with pytest.raises(AssertionError, match="failed with returncode -6"):
        error_of(tool, model, sliced, int16=True)
    error, differing = error_of(tool, model, transform(model, precision="int16").model, int16=True)
    assert differing == 0 and error < 0.05


@pytest.mark.parametrize("int16", [False, True])
def test_parallel_branches_are_one_layer_and_no_worse(tool: Any, int16: bool) -> None:
    b = GraphBuilder(11, 7, seed=1)
    x = b.node("Relu", [b.node("Conv", [b.input("x", [1, 16, 12, 12]), b.weight(16, 16, 3, 3)], pads=[1] * 4)])
    t = b.node("Add", [b.node("Conv", [x, b.weight(16, 16, 1, 1)]), b.node("Conv", [x, b.weight(16, 16, 3, 3)],
                                                                           pads=[1] * 4)])  # fmt: skip
    norm = [b.constant(np.full(16, value, np.float32)) for value in (0.1, 0.2, 0.3, 0.9)]
    model = closed(b, b.node("Relu", [b.node("Add", [t, b.node("BatchNormalization", [x, *norm])])]), 16)
    plain = transform(model, skip_passes=["merge-parallel-convs"]).model
    merged = transform(model).model
    count = [sum(n.op_type == "Conv" for n in m.graph.node) for m in (plain, merged)]
    assert count[0] > count[1] == 3
    before, (error, differing) = error_of(tool, model, plain, int16)[0], error_of(tool, model, merged, int16)
    assert differing == 0 and error < max(0.01, 1.2 * before)
