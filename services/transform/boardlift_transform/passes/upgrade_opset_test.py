import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import run_one_pass


def _old_model(opset: int = 9) -> GraphBuilder:
    b = GraphBuilder(opset, ir_version=4)
    x = b.input("x", [1, 2, 4, 4])
    x = b.node("Clip", [x], min=-1.0, max=1.0)
    x = b.node("Pad", [x], pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="constant", value=0.5)
    x = b.node("Slice", [x], starts=[1, 1], ends=[5, 6], axes=[2, 3])
    scales = b.constant(np.asarray([1, 1, 2, 2], np.float32))
    b.node("Upsample", [x, scales], "y", mode="nearest")
    b.output("y", [1, 2, 8, 10])
    return b


def test_attributes_become_inputs_with_equal_results() -> None:
    run = run_one_pass(_old_model().model(), "upgrade-opset")
    assert run.operators == ["Clip", "Pad", "Slice", "Resize"]
    assert run.model.opset_import[0].version == 11
    assert run.max_rel == 0


def test_ancient_models_are_refused() -> None:
    b = GraphBuilder(6, ir_version=3)
    b.node("Relu", [b.input("x", [1, 4])], "y")
    b.output("y", [1, 4])
    with pytest.raises(Refusal) as caught:
        run_one_pass(b.model(), "upgrade-opset")
    assert caught.value.reason == "OPSET_TOO_OLD"
