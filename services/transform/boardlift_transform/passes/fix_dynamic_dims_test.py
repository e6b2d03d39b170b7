import pytest

from boardlift_transform.build_test_models import GraphBuilder, elu_policy
from boardlift_transform.load_model import load_model
from boardlift_transform.passes.fix_dynamic_dims import PASS
from boardlift_transform.refusal import Refusal


def _history(second: str = "time") -> GraphBuilder:
    b = GraphBuilder()
    b.node("Relu", [b.input("h", ["N", second, 4])], "y")
    b.node("Relu", [b.input("x", ["N", 4])], "z")
    b.output("y", ["N", second, 4])
    b.output("z", ["N", 4])
    return b


def test_batch_becomes_one_and_the_assumption_is_listed() -> None:
    model = load_model(elu_policy()).to_ir()
    result = PASS.apply(model, {})
    assert list(model.graph.inputs[0].shape or []) == [1, 225]
    assert result.assumptions == ["obs: dimension 0 (batch) = 1, taken as the batch"]


def test_given_shape_binds_the_same_symbol_elsewhere() -> None:
    model = load_model(_history().model()).to_ir()
    PASS.apply(model, {"input_shapes": {"h": [2, 7, 4]}})
    assert list(model.graph.inputs[1].shape or []) == [2, 4]


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({}, "INPUT_SHAPE_REQUIRED"),
        ({"h": [1, 7]}, "INPUT_SHAPE_MISMATCH"),
        ({"h": [1, 7, 5]}, "INPUT_SHAPE_MISMATCH"),
        ({"h": [1, 0, 4]}, "INPUT_SHAPE_MISMATCH"),
        ({"q": [1]}, "INPUT_NOT_FOUND"),
    ],
)
def test_what_cannot_be_assumed_or_does_not_fit_is_refused(shapes: dict[str, list[int]], reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        PASS.apply(load_model(_history().model()).to_ir(), {"input_shapes": shapes})
    assert caught.value.reason == reason
