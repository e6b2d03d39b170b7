import numpy as np
import pytest
from onnx import numpy_helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize("minus", [-np.inf, np.finfo(np.float32).min])
def test_attention_mask_becomes_finite_with_the_same_result(minus: float) -> None:
    b = GraphBuilder(11)
    mask = np.triu(np.full((6, 6), minus, np.float32), 1)
    scores = b.node("Add", [b.input("x", [1, 6, 6]), b.constant(mask)])
    b.node("Softmax", [scores], "y", axis=2)
    b.output("y", [1, 6, 6])
    run = run_one_pass(b.model(), "tame-constants")
    assert run.max_rel == 0
    assert all(np.abs(numpy_helper.to_array(w)).max() <= 1e4 for w in run.model.graph.initializer)


def test_clip_bounds_at_the_end_of_float32_go() -> None:
    b = GraphBuilder(11)
    big = np.finfo(np.float32).max
    b.node("Clip", [b.input("x", [1, 6]), b.constant(np.float32(0)), b.constant(np.float32(big))], "y")
    b.output("y", [1, 6])
    run = run_one_pass(b.model(), "tame-constants")
    assert list(run.model.graph.node[0].input)[2:] in ([], [""])
    assert run.max_rel == 0


def test_nan_is_refused_with_its_reader() -> None:
    b = GraphBuilder(11)
    b.node("Add", [b.input("x", [1, 2]), b.constant(np.asarray([1, np.nan], np.float32), "w")], "y")
    b.output("y", [1, 2])
    with pytest.raises(Refusal, match=r"w \(/Add_0\)") as caught:
        run_one_pass(b.model(), "tame-constants")
    assert caught.value.reason == "CONSTANT_NAN"
