from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform


def _lstm() -> onnx.ModelProto:
    b = GraphBuilder(13)
    inputs = [b.input("x", [4, 1, 6]), b.weight(1, 32, 6), b.weight(1, 32, 8), b.weight(1, 64), "", "", ""]
    b.node("LSTM", inputs, "y", outputs=3, hidden_size=8)
    for name, shape in (("y_0", [4, 1, 1, 8]), ("y_1", [1, 1, 8]), ("y_2", [1, 1, 8])):
        b.output(name, shape)
    return b.model()


def test_empty_inputs_at_the_end_go() -> None:
    run = run_one_pass(_lstm(), "trim-inputs")
    assert len(run.model.graph.node[0].input) == 4
    assert run.max_rel == 0


def test_empty_inputs_in_the_middle_stay() -> None:
    b = GraphBuilder(13)
    b.node("Clip", [b.input("x", [1, 4]), "", b.constant(np.asarray(0.5, np.float32))], "y")
    b.output("y", [1, 4])
    assert run_one_pass(b.model(), "trim-inputs").result.applied == []


@pytest.mark.toolchain
@pytest.mark.timeout(600)
def test_the_tool_dies_on_them_and_lives_without(tool: Any) -> None:
    model = _lstm()
    assert tool.check(transform(model, skip_passes=["trim-inputs"]).model).exit_code not in (0, 1)
    assert tool.check(transform(model).model).exit_code == 0
