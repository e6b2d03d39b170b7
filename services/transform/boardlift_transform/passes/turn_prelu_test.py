import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _run(shape: list[int], slopes: list[int]) -> PassRun:
    b = GraphBuilder(11)
    x = b.input("x", shape)
    b.node("PRelu", [x, b.constant(b.rng.uniform(-0.3, 1.5, slopes).astype(np.float32))], "y")
    b.output("y", shape)
    return run_one_pass(b.model(), "turn-prelu")


@pytest.mark.parametrize("slopes", [[5], [1, 1, 5], [1, 3, 1], [1, 1, 3, 1]])
def test_slopes_along_height_or_width_are_turned_to_the_channels(slopes: list[int]) -> None:
    run = _run([1, 4, 3, 5], slopes)
    assert run.operators == ["Transpose", "PRelu", "Transpose"] and run.max_rel == 0
    assert next(list(w.dims) for w in run.model.graph.initializer if "slope" in w.name) == [max(slopes), 1, 1]


@pytest.mark.parametrize(("shape", "slopes"), [([1, 4, 3, 5], [3, 5]), ([1, 4, 3, 5], [4, 3, 5]), ([1, 6, 5], [5])])
def test_other_slopes_are_two_relu(shape: list[int], slopes: list[int]) -> None:
    run = _run(shape, slopes)
    assert run.operators == ["Relu", "Mul", "Relu", "Mul", "Add"] and run.max_rel == 0


@pytest.mark.parametrize("slopes", [[1], [4, 1, 1], [1, 1, 1]])
def test_slopes_that_the_tool_takes_stay(slopes: list[int]) -> None:
    assert _run([1, 4, 3, 5], slopes).operators == ["PRelu"]
