import numpy as np
import pytest

from boardlift_transform import check_batch, transform
from boardlift_transform.build_test_models import GraphBuilder, elu_policy


def test_a_constant_output_does_not_count_against_batch_eight() -> None:
    b = GraphBuilder(11)
    b.node("Gemm", [b.input("x", ["N", 4]), b.weight(3, 4)], "y", transB=1)
    b.node("Exp", [b.weight(1, 3)], "std")
    b.output("y", ["N", 3])
    b.output("std", [1, 3])
    assert transform(b.model()).proof.batch == "proven"


def test_outputs_that_are_no_number_do_not_count_against_batch_eight() -> None:
    b = GraphBuilder(11)
    b.node("Sqrt", [b.input("x", ["N", 4])], "y")
    b.output("y", ["N", 4])
    result = transform(b.model())
    assert any(np.isnan(r["y"]).any() for r in result.proof.reference) and result.proof.batch == "proven"


def test_a_model_too_large_to_try_batch_eight_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_batch, "MAX_BYTES", 1000)
    result = transform(elu_policy(), outputs=["actions"])
    assert result.proof.batch == "unchecked" and [f.code for f in result.findings] == ["BATCH_UNCHECKED"]


def test_a_model_that_mixes_the_batch_is_pinned_to_batch_one() -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", ["N", 4])])
    t = b.node("Sub", [t, b.node("ReduceMax", [t], axes=[0], keepdims=1)])
    b.node("Reshape", [t, b.constant([1, 2, 2])], "y")
    b.output("y", ["N", 2, 2])
    result = transform(b.model())
    assert result.passes[-1].id == "pin-batch"
    assert result.proof.batch == "literal"


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_a_model_that_mixes_the_batch_without_any_reshape_is_pinned_at_its_inputs(scale: float) -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", [1, 4, 3, 2])])
    t = b.node("Sub", [t, b.node("ReduceMax", [t], axes=[0], keepdims=1)])
    b.node("Mul", [t, b.constant(np.float32(scale))], "y")
    b.output("y", [1, 4, 3, 2])
    result = transform(b.model())
    assert [p.id for p in result.passes[-2:]] == ["pin-batch", "pin-batch"] and result.proof.batch == "literal"
    assert not [f for f in result.findings if f.code == "BATCH_WRONG"]
