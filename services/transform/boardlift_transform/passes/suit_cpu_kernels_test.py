import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def test_computed_indices_of_scatter_elements_are_cast() -> None:
    b = GraphBuilder(11)
    best = b.node("TopK", [b.input("x", [1, 9]), b.constant([3])], "t", outputs=2, axis=1)
    zeros = b.constant(np.zeros((1, 9), np.float32))
    b.node("ScatterElements", [zeros, "t_1", best], "y", axis=1)
    b.output("y", [1, 9])
    run = run_one_pass(b.model(), "suit-cpu-kernels")
    assert run.operators == ["TopK", "Cast", "ScatterElements"]
    assert run.max_rel == 0


@pytest.mark.parametrize(("coordinates", "left"), [("half_pixel", 0), ("tf_crop_and_resize", 1)])
def test_an_extrapolation_value_that_nothing_reads_goes(coordinates: str, left: int) -> None:
    b = GraphBuilder(11)
    roi = b.constant(np.asarray([0, 0, 0, 0, 1, 1, 1, 1], np.float32))
    inputs = [b.input("x", [1, 2, 3, 4]), roi, b.constant(np.asarray([1, 1, 2, 2], np.float32))]
    attributes = {"coordinate_transformation_mode": coordinates, "extrapolation_value": 0.0}
    b.node("Resize", inputs, "y", mode="linear", **attributes)
    b.output("y", [1, 2, 6, 8])
    run = run_one_pass(b.model(), "suit-cpu-kernels")
    assert [a.name for n in run.model.graph.node for a in n.attribute].count("extrapolation_value") == left
    assert run.max_rel == 0
