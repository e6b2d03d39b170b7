import numpy as np
import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.transform_model import transform


def _noisy_policy() -> onnx.ModelProto:
    b = GraphBuilder(13)
    mean = b.node("Gemm", [b.input("obs", [1, 8]), b.weight(4, 8), b.weight(4)], "mean", transB=1)
    noise = b.node("RandomNormalLike", [mean], scale=0.1)
    b.node("Add", [mean, noise], "action")
    b.output("mean", [1, 4])
    b.output("action", [1, 4])
    return b.model()


def test_sampling_is_refused_by_node() -> None:
    with pytest.raises(Refusal) as caught:
        transform(_noisy_policy())
    assert caught.value.reason == "RANDOM_OPERATOR"
    assert caught.value.metadata["node"] == "/RandomNormalLike_1"


def test_the_mean_alone_is_taken() -> None:
    assert transform(_noisy_policy(), outputs=["mean"]).proof.passed


@pytest.mark.parametrize("operator", ["BatchNormalization", "Dropout"])
def test_training_mode_is_refused_by_node(operator: str) -> None:
    b = GraphBuilder(15)
    x = b.input("x", [1, 3, 8, 8])
    if operator == "Dropout":
        inputs = [x, b.constant(np.asarray(0.5, np.float32)), b.constant(np.asarray(True))]
        b.node(operator, inputs, "y")
        b.output("y", [1, 3, 8, 8])
    else:
        ones, zeros = (b.constant(f(3, np.float32)) for f in (np.ones, np.zeros))
        b.node(operator, [x, ones, zeros, zeros, ones], "y", outputs=3, training_mode=1)
        b.output("y_0", [1, 3, 8, 8])
    with pytest.raises(Refusal) as caught:
        transform(b.model())
    assert (caught.value.reason, caught.value.metadata["operator"]) == ("TRAINING_MODE", operator)


def test_dropout_that_does_nothing_passes() -> None:
    b = GraphBuilder(13)
    t = b.node("Conv", [b.input("x", [1, 3, 8, 8]), b.weight(4, 3, 3, 3)])
    b.node("Dropout", [t, b.constant(np.asarray(0.5, np.float32)), b.constant(np.asarray(False))], "y")
    b.output("y", [1, 4, 6, 6])
    assert transform(b.model()).proof.passed


def test_weights_standardised_by_a_normalisation_in_training_mode_fold() -> None:
    b = GraphBuilder(17)  # as NFNet's Conv is exported: the statistics are those of the weights themselves
    weight = b.weight(1, 4, 27, scale=1)
    mean = b.node("ReduceMean", [weight], axes=[0, 2], keepdims=0)
    d = b.node("Sub", [weight, b.node("ReduceMean", [weight], axes=[0, 2])])
    spread = b.node("ReduceMean", [b.node("Mul", [d, d])], axes=[0, 2], keepdims=0)
    inputs = [weight, b.weight(4, scale=1), b.constant(np.zeros(4, np.float32)), mean, spread]
    t = b.node("BatchNormalization", inputs, outputs=3, training_mode=1)
    kernel = b.node("Reshape", [t, b.constant([4, 3, 3, 3])])
    b.node("Conv", [b.input("x", [1, 3, 8, 8]), kernel], "y")
    b.output("y", [1, 4, 6, 6])
    result = transform(b.model())
    assert [n.op_type for n in result.model.graph.node] == ["Conv"]
