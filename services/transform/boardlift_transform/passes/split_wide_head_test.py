import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _head(channels: int, tail: str = "") -> GraphBuilder:
    b = GraphBuilder(11)
    x = b.node("Relu", [b.input("x", [1, channels, 1, 1])])
    t = b.node("Conv", [x, b.weight(12, channels, 1, 1), b.weight(12)], "y" if not tail else "")
    if tail == "Conv":
        b.node("Conv", [t, b.weight(12, 12, 1, 1)], "y")
    elif tail:
        b.node("Softmax", [t], "y", axis=1)
    b.output("y", [1, 12, 1, 1])
    return b


@pytest.mark.parametrize(("channels", "parts"), [(256, 0), (257, 2), (512, 2), (1280, 5)])
def test_wide_heads_are_split(channels: int, parts: int) -> None:
    run = run_one_pass(_head(channels).model(), "split-wide-head")
    assert run.operators.count("Conv") == max(parts, 1)
    assert run.operators.count("Add") == max(parts - 1, 0)
    assert run.max_rel < 1e-5


def test_only_layers_that_leave_the_bpu_are_split() -> None:
    assert run_one_pass(_head(512, "Softmax").model(), "split-wide-head").operators.count("Conv") == 2
    assert run_one_pass(_head(512, "Conv").model(), "split-wide-head").operators.count("Conv") == 2
