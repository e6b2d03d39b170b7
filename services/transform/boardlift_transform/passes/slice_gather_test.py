import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.passes.slice_gather import runs
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize("indices", [[3, 1, 0, 2], [0, 1, 2], [1, 3, 5], [0, 0, 2, -1], [4], 2, -2])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_gather_becomes_slices(indices: int | list[int], axis: int) -> None:
    b = GraphBuilder(11)
    t = b.node("Relu", [b.input("x", [1, 6, 7, 8])])
    b.node("Gather", [t, b.constant(np.asarray(indices))], "y", axis=axis)
    b.output("y")
    run = run_one_pass(b.model(), "slice-gather")
    assert "Gather" not in run.operators and run.max_rel == 0


def test_the_batch_and_many_runs_stay() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 80])
    t = b.node("Gather", [x, b.constant(np.arange(80)[::-1].copy())], axis=1)
    b.node("Gather", [t, b.constant([0])], "y", axis=0)
    b.output("y", [1, 80])
    assert run_one_pass(b.model(), "slice-gather").operators == ["Gather", "Gather"]


def test_runs_cover_the_indices_in_order() -> None:
    indices = np.random.default_rng(1).integers(0, 9, 40)
    again = [start + i * step for start, count, step in runs(indices) for i in range(count)]
    assert again == indices.tolist()
