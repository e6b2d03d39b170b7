from typing import Any

import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.transform_model import transform


def _reason(operator: str, peepholes: bool = False, **attributes: Any) -> str:
    gates, b = 4 if operator == "LSTM" else 3, GraphBuilder(13)
    inputs = [b.input("x", [3, 1, 6]), b.weight(1, 8 * gates, 6), b.weight(1, 8 * gates, 8)]
    if peepholes:
        inputs += ["", "", "", "", b.weight(1, 24)]
    b.node(operator, inputs, "y", outputs=2, hidden_size=8, **attributes)
    b.output("y_0", [3, 1, 1, 8])
    b.output("y_1", [1, 1, 8])
    try:
        transform(b.model())
    except Refusal as refusal:
        assert refusal.metadata["node"] == f"/{operator}_0"
        return refusal.reason
    return ""


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("GRU", {"activations": ["Sigmoid", "Relu"]}),
        ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Tanh"]}),
        ("LSTM", {"clip": 1.0}),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"peepholes": True}),
    ],
)
def test_forms_that_the_tool_leaves_out_are_refused_by_node(operator: str, attributes: dict[str, Any]) -> None:
    assert _reason(operator, **attributes) == "RECURRENT_FORM"


def test_defaults_that_are_written_out_pass() -> None:
    assert _reason("GRU", activations=["Sigmoid", "Tanh"]) == ""
    assert _reason("LSTM", activations=["Sigmoid", "Tanh", "Tanh"]) == ""
