from __future__ import annotations

import pytest

from boardlift_compiler.apply_preset import INT16
from boardlift_compiler.explore.list_candidates import CandidateError, apply_plan, list_candidates, without_precision
from boardlift_compiler.read_model import ModelSummary, Node
from boardlift_compiler.spec import CalibrationSpec, CompileSpec, NodeOverride


def model(*types: str) -> ModelSummary:
    nodes = tuple(Node(f"{t.lower()}{k}", t, "", (), ()) for k, t in enumerate(types))
    return ModelSummary(7, {"": 11}, "g", (), (), nodes, {})


WITH_SOFTMAX, PLAIN = model("Gemm", "Softmax", "Gemm"), model("Gemm", "Gemm")


def test_forms_times_plans_times_methods():
    found = list_candidates("f", WITH_SOFTMAX, CompileSpec(), ["int8", "int16"], ["max", "kl"], [])
    assert [c.name for c in found] == ["f/int8/max", "f/int8/kl", "f/int16/max", "f/int16/kl"]


def test_plans_that_come_to_the_same_appear_once():
    found = list_candidates("f", PLAIN, CompileSpec(), ["int8", "softmax-int16"], ["max"], [])
    assert [c.name for c in found] == ["f/int8/max"]


def test_softmax_plans_name_the_softmax():
    spec = apply_plan(CompileSpec(), "softmax-int16", WITH_SOFTMAX)
    assert [(n.node, n.input_type) for n in spec.nodes] == [("softmax1", "int16")]
    assert "set_Softmax_input_int8" in apply_plan(CompileSpec(), "softmax-int8", WITH_SOFTMAX).calibration.optimization


def test_suggested_plan_takes_the_softmax_along_and_is_left_out_without_nodes():
    spec = apply_plan(CompileSpec(), "suggested", WITH_SOFTMAX, ["gemm0"])
    assert [n.node for n in spec.nodes] == ["gemm0", "softmax1"]
    assert list_candidates("f", PLAIN, CompileSpec(), ["suggested"], ["max"], []) == []


def test_precision_of_the_base_is_taken_away_and_the_rest_stays():
    calibration = CalibrationSpec(optimization=(INT16, "asymmetric", "set_Softmax_input_int8"))
    nodes = (NodeOverride("a", device="CPU"), NodeOverride("b", input_type="int16"))
    spec = without_precision(CompileSpec(preset="int16", calibration=calibration, nodes=nodes))
    assert spec.calibration.optimization == ("asymmetric",)
    assert [n.node for n in spec.nodes] == ["a"] and spec.preset == ""


def test_percentile_is_a_method_of_its_own():
    found = list_candidates("f", PLAIN, CompileSpec(), ["int8"], ["max", "max-percentile"], [])
    assert [(c.spec.calibration.method, c.spec.calibration.max_percentile) for c in found] == [
        ("max", 0.0),
        ("max", 0.99995),
    ]


def test_own_variants_take_part():
    own = CompileSpec(name="mine", calibration=CalibrationSpec(method="kl"))
    found = list_candidates("f", PLAIN, CompileSpec(), ["int8"], ["max"], [own])
    assert [c.name for c in found] == ["f/int8/max", "f/mine/kl"]


@pytest.mark.parametrize(("plan", "method"), [("int4", "max"), ("int8", "guess")])
def test_unknown_words_are_refused(plan, method):
    with pytest.raises(CandidateError):
        list_candidates("f", PLAIN, CompileSpec(), [plan], [method], [])
