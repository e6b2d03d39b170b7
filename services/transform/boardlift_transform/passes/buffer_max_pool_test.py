import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _operators(before: str, pads: list[int]) -> list[str]:
    b = GraphBuilder(11)
    t = b.input("x", [1, 4, 6, 7])
    if before:
        more = {"Transpose": {"perm": [0, 1, 3, 2]}, "Concat": {"axis": 1}}.get(before, {})
        t = b.node(before, [t, t] if before == "Concat" else [t], **more)
    b.node("MaxPool", [t], "y", kernel_shape=[2, 3], pads=pads)
    b.node("MaxPool", [t], "z", kernel_shape=[2, 2], pads=pads)
    b.output("y", None)
    b.output("z", None)
    run = run_one_pass(b.model(), "buffer-max-pool")
    assert run.max_rel == 0
    return run.operators


@pytest.mark.parametrize("before", ["", "Transpose", "Concat", "Neg"])
def test_a_pool_of_what_enters_the_bpu_is_buffered_once(before: str) -> None:
    for pads in ([0, 0, 0, 0], [0, 0, 0, 1]):
        assert _operators(before, pads).count("Mul") == 1


@pytest.mark.parametrize("before", ["Relu", "Abs"])
def test_a_pool_behind_something_computed_stays(before: str) -> None:
    assert "Mul" not in _operators(before, [0, 0, 0, 0])


def test_a_pool_with_padding_at_the_beginning_stays() -> None:
    assert "Mul" not in _operators("", [1, 0, 0, 0])
