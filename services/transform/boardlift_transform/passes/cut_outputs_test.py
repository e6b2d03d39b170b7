import pytest

from boardlift_transform.build_test_models import elu_policy
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import run_one_pass


def test_only_what_the_chosen_output_needs_stays() -> None:
    run = run_one_pass(elu_policy(), "cut-outputs", {"outputs": ["actions"]})
    assert [o.name for o in run.model.graph.output] == ["actions"]
    assert run.operators == ["Gemm", "Elu"] * 3 + ["Gemm"]
    assert run.max_rel == 0


def test_unknown_output_is_refused_with_the_choice() -> None:
    with pytest.raises(Refusal, match="actions, value, hidden") as caught:
        run_one_pass(elu_policy(), "cut-outputs", {"outputs": ["action"]})
    assert caught.value.reason == "OUTPUT_NOT_FOUND"


def test_inputs_that_nothing_needs_go() -> None:
    from boardlift_transform.build_test_models import GraphBuilder

    b = GraphBuilder()
    b.node("Relu", [b.input("a", [1, 4])], "x")
    b.node("Relu", [b.input("b", [1, 4])], "y")
    b.output("x", [1, 4])
    b.output("y", [1, 4])
    run = run_one_pass(b.model(), "cut-outputs", {"outputs": ["y"]})
    assert [i.name for i in run.model.graph.input] == ["b"]
