import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass

ONE = np.float32(1)


def spelt(turned: str = "Neg", end: str = "Div", one: float = 1.0, flip: bool = False) -> PassRun:
    b = GraphBuilder(11)
    x = b.input("x", [1, 3, 4, 5])
    t = b.node("Neg", [x]) if turned == "Neg" else b.node("Mul", [x, b.constant(np.float32(turned))])
    parts = [b.node("Exp", [t]), b.constant(np.float32(one))]
    t = b.node("Add", parts[::-1] if flip else parts)
    t = b.node("Div", [b.constant(ONE), t]) if end == "Div" else b.node("Reciprocal", [t])
    b.node("Relu", [t], "y")
    b.output("y", [1, 3, 4, 5])
    return run_one_pass(b.model(), "fuse-sigmoid")


@pytest.mark.parametrize(("turned", "end", "flip"), [("Neg", "Div", False), ("-1", "Reciprocal", True)])
def test_a_spelt_out_sigmoid_becomes_one(turned: str, end: str, flip: bool) -> None:
    run = spelt(turned, end, flip=flip)
    assert "Sigmoid" in run.operators and "Exp" not in run.operators[-2:]
    assert run.max_rel < 1e-6


@pytest.mark.parametrize("change", [{"one": 2.0}, {"turned": "-2"}])
def test_what_is_none_stays(change: dict[str, object]) -> None:
    run = spelt(**change)  # type: ignore[arg-type]
    assert "Sigmoid" not in run.operators and run.max_rel == 0


def test_a_divisor_that_grows_by_broadcasting_stays() -> None:
    b = GraphBuilder(11)
    e = b.node("Exp", [b.node("Neg", [b.input("x", [1, 3, 1, 1])])])
    t = b.node("Add", [e, b.constant(np.ones((1, 3, 4, 5), np.float32))])
    b.node("Reciprocal", [t], "y")
    b.output("y", [1, 3, 4, 5])
    assert "Sigmoid" not in run_one_pass(b.model(), "fuse-sigmoid").operators
