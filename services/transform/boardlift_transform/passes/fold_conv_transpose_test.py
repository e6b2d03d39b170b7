import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _run(steps: list[tuple[str, list[int], bool]], group: int = 1, bias: bool = True) -> PassRun:
    """A ConvTranspose and constant operators behind it: operator, shape of the constant, constant first."""
    b = GraphBuilder(11)
    x = b.input("x", [1, 8, 4, 5])
    t = b.node("ConvTranspose", [x, b.weight(8, 8 // group, 3, 3), *([b.weight(8)] if bias else [])],
               group=group, strides=[2, 2])  # fmt: skip
    for op, shape, first in steps:
        constant = b.constant(b.rng.uniform(0.5, 1.5, shape).astype(np.float32))
        t = b.node(op, [constant, t] if first else [t, constant])
    b.node("Abs", [t], "y")
    b.output("y")
    return run_one_pass(b.model(), "fold-conv-transpose")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("group", [1, 2, 8])
@pytest.mark.parametrize(
    "steps",
    [
        [("Add", [8, 1, 1], False)],
        [("Mul", [1, 8, 1, 1], True)],
        [("Mul", [], False), ("Add", [1], True), ("Sub", [8, 1, 1], False)],
    ],
)
def test_constants_per_channel_are_folded(steps: list[tuple[str, list[int], bool]], group: int, bias: bool) -> None:
    run = _run(steps, group, bias)
    assert run.operators == ["ConvTranspose", "Abs"] and run.max_rel < 1e-6


@pytest.mark.parametrize("step", [("Add", [1, 1, 1, 11], False), ("Mul", [8, 9, 11], False), ("Sub", [8, 1, 1], True)])
def test_others_stay(step: tuple[str, list[int], bool]) -> None:
    assert _run([step]).operators == ["ConvTranspose", step[0], "Abs"]
