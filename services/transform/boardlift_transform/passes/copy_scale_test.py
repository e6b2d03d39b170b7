import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize(
    ("channels", "readers", "scalings"), [(1, 2, 2), (1, 3, 3), (1, 1, 1), (4, 2, 1)]
)  # fmt: skip
def test_every_reader_of_one_scaled_channel_gets_its_own(channels: int, readers: int, scalings: int) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 5, 6])
    t = b.node("Mul", [b.input("z", [1, channels, 5, 6]), b.constant(np.float32(0.5))])
    for _ in range(readers):
        x = b.node("Sub", [x, t])
    b.node("Relu", [x], "y")
    b.output("y", [1, 4, 5, 6])
    run = run_one_pass(b.model(), "copy-scale")
    assert run.operators.count("Mul") == scalings and run.max_rel == 0


def test_a_scaling_that_is_an_output_as_well_keeps_its_name() -> None:
    b = GraphBuilder(11)
    t = b.node("Mul", [b.input("z", [1, 1, 5, 6]), b.constant(np.float32(0.5))], "s")
    b.node("Sub", [b.node("Relu", [t]), b.node("Tanh", [t])], "y")
    b.output("s", [1, 1, 5, 6])
    b.output("y", [1, 1, 5, 6])
    run = run_one_pass(b.model(), "copy-scale")
    assert run.operators.count("Mul") == 2 and run.max_rel == 0
    assert [o.name for o in run.model.graph.output] == ["s", "y"]
