from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.pass_result import PassResult
from boardlift_transform.passes import PASSES_BY_ID
from boardlift_transform.prove_quantised import LOWEST_COSINE
from boardlift_transform.refusal import Refusal
from boardlift_transform.transform_model import transform


def _policy(step: float) -> onnx.ModelProto:
    """Two Gemm with a quantised value in front of each."""
    b = GraphBuilder(13)
    numbers = [b.constant(np.asarray(step, np.float32)), b.constant(np.asarray(0, np.int8))]
    t = b.input("obs", ["batch", 16])
    for size, out in ((24, ""), (4, "actions")):
        q = b.node("QuantizeLinear", [t, *numbers])
        t = b.node("DequantizeLinear", [q, *numbers])
        t = b.node("Gemm", [t, b.weight(size, 16 if not out else 24), b.weight(size, scale=0.1)], out, transB=1)
    b.output("actions", ["batch", 4])
    return b.model()


def test_a_quantised_model_is_proven_in_float_and_measured_against_itself() -> None:
    result = transform(_policy(0.03))
    assert not {"QuantizeLinear", "DequantizeLinear"} & {n.op_type for n in result.model.graph.node}
    comparison = result.proof.comparisons[0]
    assert comparison.passed and 1e-4 < comparison.max_rel < 0.05
    finding = next(f for f in result.findings if f.code == "QUANTISATION_REMOVED")
    assert f"{comparison.max_abs:.3g}" in finding.message
    assert result.proof.batch == "proven"


def test_the_reference_is_the_user_s_own_model() -> None:
    model, obs = _policy(0.03), np.full((1, 16), 0.014, np.float32)
    zeros = np.zeros((1, 16), np.float32)
    found = [transform(model, samples={"obs": x}).proof.reference[0]["actions"] for x in (obs, zeros)]
    assert np.array_equal(*found)  # below half a step the quantised model sees zeros; the float model inside does not


def test_a_model_that_is_too_coarse_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        transform(_policy(4.0))
    assert caught.value.reason == "QUANTISATION_TOO_COARSE"
    assert float(str(caught.value.metadata["cosine"])) < LOWEST_COSINE
    assert "before it was quantised" in caught.value.remedy


def test_other_passes_keep_their_tight_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
        for name, value in model.graph.initializers.items():
            array = np.asarray(value.const_value.numpy() if value.const_value else 0)
            if array.dtype == np.float32 and array.size > 60:
                value.const_value = ir.tensor((array * 1.002).astype(np.float32), name=name)
        return PassResult()

    monkeypatch.setitem(PASSES_BY_ID, "replace-neg", replace(PASSES_BY_ID["replace-neg"], apply=spoil))
    with pytest.raises(Refusal) as caught:
        transform(_policy(0.03))
    assert (caught.value.reason, caught.value.metadata["pass"]) == ("NOT_EQUIVALENT", "replace-neg")
