import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    "window",
    [
        {"strides": [2, 3], "pads": [0, 1, 1, 0]},
        {"strides": [1, 1], "pads": [2, 0, 1, 0]},
        {"strides": [4, 5]},
        {"strides": [4, 2], "output_padding": [3, 1], "pads": [1, 0, 0, 0]},
        {"strides": [3, 4], "auto_pad": "SAME_UPPER"},
        {"strides": [3, 4], "auto_pad": "SAME_LOWER"},
        {"strides": [4, 4], "output_shape": [18, 17]},
    ],
)
def test_uneven_and_holed_forms_become_a_plain_one_and_a_slice(window: dict[str, object], group: int) -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 5, 5])
    b.node("ConvTranspose", [x, b.weight(4, 3, 3, 2), b.weight(3 * group)], "y", group=group, **window)
    b.output("y")
    run = run_one_pass(b.model(), "crop-conv-transpose")
    assert run.max_rel < 1e-6
    assert run.operators == ["ConvTranspose", "Slice"]


def test_an_even_one_stays() -> None:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, 5, 5])
    b.node("ConvTranspose", [x, b.weight(4, 3, 4, 4)], "y", strides=[2, 2], pads=[1, 1, 1, 1])
    b.output("y", [1, 3, 10, 10])
    assert run_one_pass(b.model(), "crop-conv-transpose").operators == ["ConvTranspose"]
