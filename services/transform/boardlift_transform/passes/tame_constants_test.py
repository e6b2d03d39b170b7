import numpy as np
import pytest
from onnx import numpy_helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import PassRun, run_one_pass


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


def _masked(mask: np.ndarray, reader: str = "Softmax") -> PassRun:
    b = GraphBuilder(11)
    t = b.node("Add", [b.input("x", [1, 2, 6, 6]), b.constant(mask.astype(np.float32))])
    b.node(reader, [t], "y", **({"axis": 3} if reader == "Softmax" else {}))
    b.output("y", [1, 2, 6, 6])
    return run_one_pass(b.model(), "tame-constants")


def _lowest(run: PassRun) -> float:
    used = {i for n in run.model.graph.node for i in n.input}
    return min(float(numpy_helper.to_array(w).min()) for w in run.model.graph.initializer if w.name in used)


@pytest.mark.parametrize("depth", [-1e4, -65504, -1e9, -3.4e38, -np.inf])
def test_a_mask_in_front_of_a_softmax_keeps_the_scores_their_steps(depth: float) -> None:
    run = _masked(np.triu(np.full((6, 6), depth), 1))
    assert _lowest(run) == -500 and run.max_rel < 1e-6


def test_other_large_constants_stay() -> None:
    whole = np.zeros((6, 6))
    whole[2] = -1e9
    assert _lowest(_masked(whole)) == np.float32(-1e9)
    assert _lowest(_masked(np.triu(np.full((6, 6), -1e9), 1), "Relu")) == np.float32(-1e9)
    assert _lowest(_masked(np.triu(np.full((6, 6), -300.0), 1))) == -300
