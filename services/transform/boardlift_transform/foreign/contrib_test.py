import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import PassRun, run_one_pass
from boardlift_transform.transform_model import transform

CONTRIB = "com.microsoft"


def _run(b: GraphBuilder) -> PassRun:
    b.domains = (CONTRIB,)
    return run_one_pass(b.model(), "replace-foreign")


@pytest.mark.parametrize(
    ("kind", "numbers", "made"),
    [
        ("Relu", {}, ["Conv", "Relu"]),
        ("LeakyRelu", {"activation_params": [0.2]}, ["Conv", "LeakyRelu"]),
        ("HardSigmoid", {"activation_params": [0.2, 0.5]}, ["Conv", "HardSigmoid"]),
        ("Clip", {"activation_params": [-0.5, 0.5]}, ["Conv", "Clip"]),
    ],
)
def test_conv_with_activation(kind: str, numbers: dict[str, object], made: list[str]) -> None:
    b = GraphBuilder(13)
    inputs = [b.input("x", [1, 3, 6, 6]), b.weight(4, 3, 3, 3), b.weight(4)]
    b.node("FusedConv", inputs, "y", domain=CONTRIB, activation=kind, pads=[1] * 4, **numbers)
    b.output("y", [1, 4, 6, 6])
    run = _run(b)
    assert run.operators == made
    assert run.max_rel < 1e-5


def test_conv_with_a_sum_in_front_of_the_activation() -> None:
    b = GraphBuilder(13)
    x = b.input("x", [1, 4, 6, 6])
    b.node("FusedConv", [x, b.weight(4, 4, 1, 1), b.weight(4), x], "y", domain=CONTRIB, activation="Relu")
    b.output("y", [1, 4, 6, 6])
    run = _run(b)
    assert run.operators == ["Conv", "Add", "Relu"]
    assert run.max_rel < 1e-5


def test_gemm_with_elu() -> None:
    b = GraphBuilder(13)
    inputs = [b.input("x", [1, 8]), b.weight(4, 8), b.weight(4)]
    b.node("FusedGemm", inputs, "y", domain=CONTRIB, activation="Elu", activation_alpha=0.7, transB=1)
    b.output("y", [1, 4])
    run = _run(b)
    assert run.operators == ["Gemm", "Elu"]
    assert run.max_rel < 1e-5


@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 1), (1, 0), (1, 1)])
def test_matmul_with_transposes_and_factor(trans_a: int, trans_b: int) -> None:
    b = GraphBuilder(13)
    x = b.input("x", [2, 5, 3] if trans_a else [2, 3, 5])
    z = b.input("z", [2, 4, 5] if trans_b else [2, 5, 4])
    b.node("FusedMatMul", [x, z], "y", domain=CONTRIB, transA=trans_a, transB=trans_b, alpha=0.25)
    b.output("y", [2, 3, 4])
    assert _run(b).max_rel < 1e-5


@pytest.mark.parametrize("kind", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
def test_gelus(kind: str) -> None:
    b = GraphBuilder(13)
    inputs = [b.input("x", [1, 32])] + ([b.weight(32)] if kind in ("BiasGelu", "FastGelu") else [])
    b.node(kind, inputs, "y", domain=CONTRIB)
    b.output("y", [1, 32])
    run = _run(b)
    assert kind not in run.operators
    assert run.max_rel < 1e-5


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_norm_behind_a_skip(kind: str, opset: int) -> None:
    b = GraphBuilder(opset)
    shape = [1, 5, 16]
    gains = [b.weight(16)] * (1 if "Simplified" in kind else 2)
    b.node(kind, [b.input("x", shape), b.input("skip", shape), *gains, b.weight(16)], "y", domain=CONTRIB, epsilon=1e-5)
    b.output("y", shape)
    run = _run(b)
    assert kind not in run.operators
    assert run.max_rel < 1e-5


def test_layer_norm_that_the_runtime_writes_below_opset_17() -> None:
    b = GraphBuilder(17)
    x = b.input("x", [1, 5, 16])
    b.node("LayerNormalization", [x, b.weight(16), b.weight(16)], "y", epsilon=1e-5)
    b.output("y", [1, 5, 16])
    model = b.model()
    model.opset_import[0].version = 13
    result = transform(model)
    assert result.proof.passed
    assert "replace-foreign" in [p.id for p in result.passes if p.applied]


def test_what_has_no_rule_is_refused_by_node_with_the_remedy() -> None:
    b = GraphBuilder(13)
    x = b.input("x", [1, 4, 8])
    inputs = [x, b.weight(8, 24), b.constant(np.zeros(24, np.float32))]
    b.node("Attention", inputs, "y", domain=CONTRIB, num_heads=2, qkv_hidden_sizes=[8, 8, 8])
    b.output("y", [1, 4, 8])
    b.domains = (CONTRIB,)
    with pytest.raises(Refusal) as caught:
        transform(b.model())
    assert (caught.value.reason, caught.value.metadata["node"]) == ("FOREIGN_DOMAIN", "/Attention_0")
    assert "ORT_ENABLE_BASIC" in caught.value.remedy
