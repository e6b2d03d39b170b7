import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.passes.replace_foreign import is_needed
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform


def _model(domain: str, operator: str) -> onnx.ModelProto:
    b = GraphBuilder(13)
    t = b.node("Gemm", [b.input("x", [1, 8]), b.weight(4, 8)], "h", transB=1)
    b.node(operator, [t], "y", domain=domain)
    b.output("h", [1, 4])
    b.output("y", [1, 4])
    b.domains = (domain,)
    return b.model()


def test_one_operator_is_replaced_and_reported() -> None:
    run = run_one_pass(_model("com.microsoft", "QuickGelu"), "replace-foreign")
    assert [(a.node, a.before) for a in run.result.applied] == [("/QuickGelu_1", "com.microsoft::QuickGelu")]
    assert not [o for o in run.model.graph.node if o.domain]


def test_a_domain_that_nobody_has_is_refused_before_the_model_is_run() -> None:
    with pytest.raises(Refusal) as caught:
        transform(_model("my.ops", "Warp"))
    assert (caught.value.reason, caught.value.metadata["node"]) == ("FOREIGN_DOMAIN", "/Warp_1")


def test_without_the_output_that_needs_it_a_foreign_operator_is_no_matter() -> None:
    b = GraphBuilder(13)
    t = b.node("Gemm", [b.input("x", [1, 8]), b.weight(4, 8)], "h", transB=1)
    tree = {"nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_values": [0.0],
            "nodes_modes": ["LEAF"], "nodes_truenodeids": [0], "nodes_falsenodeids": [0], "target_treeids": [0],
            "target_nodeids": [0], "target_ids": [0], "target_weights": [1.0], "n_targets": 1}  # fmt: skip
    b.node("TreeEnsembleRegressor", [t], "y", domain="ai.onnx.ml", **tree)
    b.output("h", [1, 4])
    b.output("y", [1, 1])
    b.domains = ("ai.onnx.ml",)
    with pytest.raises(Refusal) as caught:
        transform(b.model())
    assert caught.value.metadata["node"] == "/TreeEnsembleRegressor_1"
    assert "beside the board's model" in caught.value.remedy
    assert transform(b.model(), outputs=["h"]).proof.passed


def test_the_plan_asks_only_where_there_is_something_to_do() -> None:
    assert is_needed(["ai.onnx.ml::Scaler"], 13)
    assert is_needed(["LayerNormalization"], 13)
    assert not is_needed(["LayerNormalization", "Gemm"], 17)
