import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize(
    ("scale", "mode", "rounding", "rewritten"),
    [
        (3, "asymmetric", "floor", True),
        (3, "half_pixel", "round_prefer_floor", True),
        (3, "asymmetric", "round_prefer_floor", False),
        (2, "asymmetric", "floor", False),
        (5, "half_pixel", "round_prefer_ceil", True),
    ],
)
def test_only_true_repetition_is_rewritten(scale: int, mode: str, rounding: str, rewritten: bool) -> None:
    b = GraphBuilder(11)
    scales = b.constant(np.asarray([1, 1, scale, scale], np.float32))
    roi = b.constant(np.zeros(0, np.float32))
    options = {"mode": "nearest", "coordinate_transformation_mode": mode, "nearest_mode": rounding}
    b.node("Relu", [b.node("Resize", [b.input("x", [1, 3, 4, 5]), roi, scales], **options)], "y")
    b.output("y", [1, 3, 4 * scale, 5 * scale])
    run = run_one_pass(b.model(), "replace-upsample")
    assert ("ConvTranspose" in run.operators) == rewritten
    assert run.max_rel == 0
