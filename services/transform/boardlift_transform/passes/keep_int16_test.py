import numpy as np
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _pool(operator: str, size: int = 9, opset: int = 11, **attributes: object) -> GraphBuilder:
    b = GraphBuilder(opset)
    t = b.node("Relu", [b.input("x", [1, 6, size, size])])
    b.node(operator, [t], "y", **attributes)
    b.output("y", ["n", "c", "h", "w"] if attributes.get("keepdims", 1) else ["n", "c"])
    return b


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("GlobalAveragePool", {}),
        ("ReduceMean", {"axes": [2, 3]}),
        ("ReduceMean", {"axes": [-1, -2], "keepdims": 0}),
    ],
)
def test_a_global_pool_becomes_two_means(operator: str, attributes: dict[str, object]) -> None:
    run = run_one_pass(_pool(operator, **attributes).model(), "keep-int16")
    assert [op for op in run.operators if op != "Reshape"] == ["Relu", "ReduceMean", "ReduceMean"]
    assert run.max_rel < 1e-6


def test_a_global_max_pool_becomes_two_maxima() -> None:
    run = run_one_pass(_pool("GlobalMaxPool").model(), "keep-int16")
    assert run.operators == ["Relu", "ReduceMax", "ReduceMax"] and run.max_rel == 0


@pytest.mark.parametrize(
    ("kernel", "strides"), [([2, 2], [2, 2]), ([3, 3], [2, 2]), ([3, 2], [3, 1]), ([5, 5], [4, 4])]
)
@pytest.mark.parametrize("size", [8, 9, 13])
def test_a_pool_with_a_stride_becomes_a_convolution_and_a_slice(
    kernel: list[int], strides: list[int], size: int
) -> None:
    run = run_one_pass(_pool("AveragePool", size, kernel_shape=kernel, strides=strides).model(), "keep-int16")
    assert run.operators == ["Relu", "Conv", "Slice"] and run.max_rel < 1e-6


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 3]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    ],
)
def test_other_pools_are_left_alone(attributes: dict[str, object]) -> None:
    assert run_one_pass(_pool("AveragePool", **attributes).model(), "keep-int16").operators[1] == "AveragePool"


@pytest.mark.parametrize(("kernel", "pads"), [(3, [1, 1, 1, 1]), (5, [0, 1, 2, 2]), (2, [0, 0, 0, 0])])
@pytest.mark.parametrize("group", [6, 3])
def test_a_depthwise_convolution_with_a_stride_too(kernel: int, pads: list[int], group: int) -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", [1, 6, 11, 12])])
    operands = [t, b.weight(6, 6 // group, kernel, kernel), b.weight(6)]
    b.node("Conv", operands, "y", group=group, strides=[2, 2], pads=pads)
    b.output("y", ["n", "c", "h", "w"])
    run = run_one_pass(b.model(), "keep-int16")
    assert run.operators == (["Relu", "Conv", "Slice"] if group == 6 else ["Relu", "Conv"])
    assert run.max_rel < 1e-6


def test_only_a_plan_for_int16_runs_it() -> None:
    model = _pool("GlobalAveragePool").model()
    ids = {p: [s.id for s in transform(model, precision=p).plan.passes] for p in ("int16", "int8", "")}
    assert "keep-int16" in ids["int16"] and "keep-int16" not in ids["int8"] + ids[""]


def test_batch_of_eight_still_runs() -> None:
    b = GraphBuilder(17)
    t = b.node("AveragePool", [b.input("x", ["n", 4, 16, 16])], kernel_shape=[2, 2], strides=[2, 2])
    b.node("GlobalAveragePool", [b.node("Relu", [t])], "y")
    b.output("y", ["n", "c", "h", "w"])
    samples = {"x": np.random.default_rng(0).standard_normal((4, 4, 16, 16)).astype(np.float32)}
    result = transform(b.model(), precision="int16", samples=samples)
    assert result.proof.batch == "proven" and "GlobalAveragePool" not in {n.op_type for n in result.model.graph.node}


def test_a_strided_conv_of_one_channel_counts_as_depthwise() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 1, 9, 10])
    b.node("Conv", [x, b.weight(8, 1, 3, 3), b.weight(8)], "y", strides=[2, 2], pads=[1, 1, 1, 1])
    b.output("y", ["n", "c", "h", "w"])
    run = run_one_pass(b.model(), "keep-int16")
    assert run.operators == ["Conv", "Slice"] and run.max_rel < 1e-6


@pytest.mark.parametrize(
    ("behind", "operators"),
    [("ConvTranspose", ["Conv", "ConvTranspose"]), ("Conv", ["Conv", "Slice", "Conv"])],
)
def test_a_strided_layer_in_front_of_a_transposed_one_is_left(behind: str, operators: list[str]) -> None:
    b = GraphBuilder(11)
    t = b.node("Conv", [b.input("x", [1, 4, 8, 8]), b.weight(4, 1, 3, 3)], group=4, strides=[2, 2], pads=[1, 1, 1, 1])
    b.node(behind, [t, b.weight(4, 4, 1, 1)], "y")
    b.output("y", [1, 4, 4, 4])
    run = run_one_pass(b.model(), "keep-int16")
    assert run.operators == operators
    assert run.max_rel < 1e-6 and bool(run.result.skipped) == (behind == "ConvTranspose")
