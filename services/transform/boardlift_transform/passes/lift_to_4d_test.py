import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder, elu_policy
from boardlift_transform.run_one_pass import run_one_pass

WRAP = ("wrap-inputs", "wrap-outputs")


def test_policy_becomes_pointwise_convolutions_without_reshapes() -> None:
    run = run_one_pass(elu_policy(opset=11), "lift-to-4d", before=WRAP)
    assert "Gemm" not in run.operators and "Reshape" not in run.operators
    assert run.operators[:3] == ["Transpose", "Conv", "Elu"]
    assert run.max_rel < 1e-5


def test_conv1d_history_encoder_becomes_conv2d() -> None:
    b = GraphBuilder(11)
    x = b.input("h", [1, 60])
    t = b.node("Reshape", [x, b.constant(np.asarray([1, 6, 10]))])
    t = b.node("Relu", [b.node("Conv", [t, b.weight(8, 6, 3), b.weight(8)], strides=[2], pads=[1, 1])])
    t = b.node("MaxPool", [t], kernel_shape=[2], strides=[1])
    t = b.node("ConvTranspose", [t, b.weight(8, 4, 3)], strides=[2])
    t = b.node("Flatten", [t])
    b.node("Gemm", [t, b.weight(5, 36), b.weight(5)], "y", transB=1)
    b.output("y", [1, 5])
    run = run_one_pass(b.model(), "lift-to-4d", before=WRAP)
    assert run.operators == ["Transpose", "Reshape", "Conv", "Relu", "MaxPool", "ConvTranspose", "Reshape", "Conv"]
    assert all(len(a.ints) == 2 for n in run.model.graph.node for a in n.attribute if a.name == "kernel_shape")
    assert run.max_rel < 1e-5


def _every_rule() -> GraphBuilder:
    b = GraphBuilder(11)
    x = b.input("x", [1, 12])
    t = b.node("Gemm", [x, b.weight(16, 12), b.weight(16)], transB=1, alpha=0.5, beta=2.0)
    parts = b.node("Split", [t], "part", outputs=2, axis=-1, split=[4, 12])
    gate = b.node("Softmax", [parts], axis=1)
    norm = b.node("ReduceL2", ["part_1"], axes=[-1], keepdims=1)
    t = b.node("Div", ["part_1", b.node("Clip", [norm, b.constant(np.float32(1e-6))])])
    t = b.node("Concat", [t, gate, b.constant(np.ones((1, 2), np.float32))], axis=1)
    t = b.node("Slice", [t, b.constant([1]), b.constant([-1]), b.constant([1])])
    t = b.node("Add", [t, b.weight(1, 16, scale=1.0)])
    t = b.node("Pad", [t, b.constant([0, 1, 0, 3])])
    t = b.node("BatchNormalization", [t, *[b.constant(np.full(20, v, np.float32)) for v in (1.1, 0.1, 0.2, 0.9)]])
    m = b.node("Unsqueeze", [b.node("ReduceMean", [t], axes=[1], keepdims=0)], axes=[1])
    t = b.node("Gather", [b.node("Sub", [t, m]), b.constant([3, 1, 2])], axis=1)
    b.node("MatMul", [t, b.weight(3, 4)], "y")
    b.output("y", [1, 4])
    return b


def test_every_two_dimensional_rule_keeps_the_numbers() -> None:
    run = run_one_pass(_every_rule().model(), "lift-to-4d", before=WRAP)
    assert not run.result.skipped
    assert "Gemm" not in run.operators and "MatMul" not in run.operators
    assert run.max_rel < 1e-5


def test_tokens_keep_their_layout_and_matmul_becomes_a_convolution() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 7, 16])
    t = b.node("Add", [b.node("MatMul", [x, b.weight(16, 24)]), b.weight(24)])
    t = b.node("Mul", [t, b.node("Sigmoid", [t])])
    t = b.node("Transpose", [t], perm=[0, 2, 1])
    b.node("MatMul", [t, b.weight(7, 5)], "y")
    b.output("y", [1, 24, 5])
    run = run_one_pass(b.model(), "lift-to-4d", before=WRAP)
    assert run.operators.count("Conv") == 2 and "MatMul" not in run.operators
    assert run.max_rel < 1e-5


@pytest.mark.parametrize("outside", ["CumSum", "GRU"])
def test_an_operator_without_a_rule_gets_its_value_at_the_old_rank(outside: str) -> None:
    b = GraphBuilder(11)
    t = b.node("Gemm", [b.input("x", [1, 8]), b.weight(6, 8)], transB=1)
    if outside == "CumSum":
        t = b.node("CumSum", [t, b.constant(np.asarray(1, np.int32))])
    else:
        t = b.node("Unsqueeze", [t], axes=[0])
        b.node("GRU", [t, b.weight(1, 18, 6), b.weight(1, 18, 6)], "g", outputs=2, hidden_size=6)
        t = b.node("Squeeze", ["g_1"], axes=[0])
    b.node("Gemm", [t, b.weight(3, 6)], "y", transB=1)
    b.output("y", [1, 3])
    run = run_one_pass(b.model(), "lift-to-4d", before=WRAP)
    assert outside in run.operators and run.operators.count("Conv") == 2
    assert run.max_rel < 1e-5


def test_element_wise_operators_alone_are_left_alone() -> None:
    b = GraphBuilder(11)
    b.node("Relu", [b.input("x", [1, 4])], "y")
    b.output("y", [1, 4])
    assert not run_one_pass(b.model(), "lift-to-4d").result.applied


def test_values_without_a_batch_axis_lie_on_the_last_axes() -> None:
    b = GraphBuilder(11)
    t = b.node("Reshape", [b.input("x", [1, 48]), b.constant([6, 8])])
    t = b.node("Sub", [t, b.node("ReduceMean", [t], axes=[0], keepdims=1)])
    t = b.node("Gemm", [t, b.weight(8, 10), b.weight(10)])
    t = b.node("Reshape", [t, b.constant([6, 2, 5])])
    t = b.node("MatMul", [t, b.weight(5, 3)])
    t = b.node("MatMul", [b.weight(2, 2), t])
    b.node("Softmax", [b.node("Transpose", [t], perm=[0, 2, 1])], "y", axis=2)
    b.output("y", [6, 3, 2])
    run = run_one_pass(b.model(), "lift-to-4d", before=WRAP)
    assert not {"Gemm", "MatMul"} & set(run.operators)
    assert run.max_rel < 1e-5
