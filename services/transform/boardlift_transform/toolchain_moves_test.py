"""Moves that the vendor's runtime dies on, or that the board's CPU does not take: before and after the passes."""

from typing import Any

import numpy as np
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.opset.families import sample_constant
from boardlift_transform.toolchain_test import between_convs, error_of, samples_of

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]


@pytest.mark.parametrize("int16", [False, True])
def test_the_runtime_dies_on_a_pad_by_less_than_nothing_and_runs_after_the_pass(tool: Any, int16: bool) -> None:
    model = between_convs("Pad", [0, 0, -1, 2, 0, 0, 1, -3], channels=8, size=10)
    with pytest.raises(AssertionError):
        error_of(tool, model, transform(model, skip_passes=["crop-pad"]).model, int16=int16)
    error, differing = error_of(tool, model, transform(model).model, int16=int16)
    assert differing == 0 and error < 0.05


def test_argmax_along_the_rows_is_built_with_its_indices(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Conv", [b.input("x", [1, 6, 8, 10]), b.weight(8, 6, 3, 3), b.weight(8)], pads=[1, 1, 1, 1])
    b.node("ArgMax", [t], "y", axis=3, keepdims=1)
    b.output("y", [1, 8, 8, 1], 7)
    model = b.model()
    result = transform(model, samples=(samples := samples_of(model)))
    assert [n.op_type for n in result.model.graph.node].count("Transpose") == 1  # the board's CPU takes none of int64
    run = tool.compile(result.model, samples)
    assert run.exit_code == 0, run.errors
    got, differing = tool.execute(run, {name: array[0] for name, array in samples.items()})
    assert differing == 0 and got["y"].shape == (1, 8, 8, 1) and np.ptp(got["y"]) > 1


def test_code_of_samples_at_constant_places_dies_in_the_simulator_and_runs_as_a_product(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    b = GraphBuilder(16, 8, seed=1)
    t = b.node("Conv", [b.input("x", [1, 4, 8, 8]), b.weight(8, 4, 3, 3), b.weight(8)], pads=[1, 1, 1, 1])
    grid = b.constant(rng.uniform(-0.9, 0.9, (1, 6, 5, 2)).astype(np.float32))
    t = b.node("GridSample", [t, grid], mode="bilinear", padding_mode="zeros", align_corners=0)
    b.node("Conv", [t, b.weight(8, 8, 1, 1)], "y")
    b.output("y", [1, 8, 6, 5])
    model = b.model()
    monkeypatch.setattr(sample_constant, "MOST_ELEMENTS", 0)
    gathered = transform(model).model
    monkeypatch.undo()
    assert "GatherElements" in [n.op_type for n in gathered.graph.node]
    with pytest.raises(AssertionError):
        error_of(tool, model, gathered, int16=False)
    error, differing = error_of(tool, model, transform(model).model, int16=False)
    assert differing == 0 and error < 0.05


def test_one_scaled_channel_read_in_two_ways_ends_the_compiler_and_is_built_when_copied(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Conv", [b.input("x", [1, 4, 9, 16]), b.weight(4, 4, 1, 1)])
    low = b.node("ReduceMin", [t], axes=[1], keepdims=1)
    span = b.node("Sub", [b.node("ReduceMax", [t], axes=[1], keepdims=1), low])
    b.node("Div", [b.node("Sub", [t, low]), b.node("Add", [span, b.constant(np.float32(0.1))])], "y")
    b.output("y", [1, 4, 9, 16])
    model = b.model()
    with pytest.raises(AssertionError, match="failed with returncode -6"):
        error_of(tool, model, transform(model, skip_passes=["copy-scale"]).model, int16=False)
    error, differing = error_of(tool, model, transform(model).model, int16=False)
    assert differing == 0 and error < 0.1


def test_a_spelt_out_sigmoid_stops_the_tool_in_int16_and_is_built_as_one(tool: Any) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("Conv", [b.input("x", [1, 4, 6, 6]), b.weight(8, 4, 1, 1, scale=40)])
    grown = b.node("Add", [b.node("Exp", [b.node("Neg", [t])]), b.constant(np.float32(1))])
    t = b.node("Div", [b.constant(np.float32(1)), grown])
    b.node("Conv", [t, b.weight(4, 8, 1, 1)], "y")
    b.output("y", [1, 4, 6, 6])
    model = b.model()
    with pytest.raises(AssertionError, match="There is a Pass Error"):
        error_of(tool, model, transform(model, precision="int16", skip_passes=["fuse-sigmoid"]).model, int16=True)
    error, differing = error_of(tool, model, transform(model, precision="int16").model, int16=True)
    assert differing == 0 and error < 0.05


def test_a_mean_over_channels_and_rows_behind_a_transposed_conv_ends_the_compiler_and_is_built_when_split(
    tool: Any,
) -> None:
    b = GraphBuilder(11, 7, seed=1)
    t = b.node("ConvTranspose", [b.input("x", [1, 4, 10, 12]), b.weight(4, 8, 3, 1)], kernel_shape=[3, 1])
    b.node("Sub", [t, b.node("ReduceMean", [t], axes=[1, 2], keepdims=1)], "y")
    b.output("y", [1, 8, 12, 12])
    model = b.model()
    with pytest.raises(AssertionError, match="failed with returncode -6"):
        error_of(tool, model, transform(model, skip_passes=["split-reductions"]).model, int16=False)
    error, differing = error_of(tool, model, transform(model).model, int16=False)
    assert differing == 0 and error < 0.05
