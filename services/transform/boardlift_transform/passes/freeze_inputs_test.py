import numpy as np
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import run_one_pass


def _scaled() -> GraphBuilder:
    b = GraphBuilder()
    x, rate = b.input("x", [1, 4]), b.input("rate", [], TensorProto.INT64)
    b.node("Mul", [x, b.node("Cast", [rate], to=TensorProto.FLOAT)], "y")
    b.output("y", [1, 4])
    return b


def test_frozen_input_becomes_a_constant_of_its_type() -> None:
    feeds = [{"x": np.ones((1, 4), np.float32), "rate": np.asarray(16000)}]
    run = run_one_pass(_scaled().model(), "freeze-inputs", {"values": {"rate": 16000}}, samples=feeds)
    assert [i.name for i in run.model.graph.input] == ["x"]
    assert run.max_rel == 0


def test_unknown_input_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        run_one_pass(_scaled().model(), "freeze-inputs", {"values": {"speed": 1}})
    assert caught.value.reason == "INPUT_NOT_FOUND"
