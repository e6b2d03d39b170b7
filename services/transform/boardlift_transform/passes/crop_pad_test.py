import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def run_pad(pads: list[int], mode: str = "constant", value: float | None = None) -> PassRun:
    b = GraphBuilder(11)
    more = [] if value is None else [b.constant(np.float32(value))]
    b.node("Relu", [b.node("Pad", [b.input("x", [1, 3, 6, 7]), b.constant(pads), *more], mode=mode)], "y")
    b.output("y", [1, "c", "h", "w"])
    return run_one_pass(b.model(), "crop-pad")


@pytest.mark.parametrize(
    ("pads", "mode", "operators"),
    [
        ([0, 0, -1, 2, 0, 0, 1, -3], "constant", ["Slice", "Pad", "Relu"]),
        ([0, -1, -1, -1, 0, 0, -1, -2], "constant", ["Slice", "Relu"]),
        ([0, 0, -2, 0, 0, 0, 0, -1], "edge", ["Slice", "Relu"]),
        ([0, 0, 1, 2, 0, 0, 1, 0], "constant", ["Pad", "Relu"]),
    ],
)
def test_what_is_cropped_becomes_a_slice(pads: list[int], mode: str, operators: list[str]) -> None:
    run = run_pad(pads, mode, value=0.7 if mode == "constant" else None)
    assert run.operators == operators
    assert run.max_rel == 0


def test_cropping_and_reflecting_at_once_is_left_with_a_reason() -> None:
    run = run_pad([0, 0, -1, 2, 0, 0, 0, 0], "edge")
    assert run.operators == ["Pad", "Relu"] and "reflects" in run.result.skipped[0].reason
