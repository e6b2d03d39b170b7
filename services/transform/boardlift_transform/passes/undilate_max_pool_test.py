import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.transform_model import transform


@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "pads", "ceil"),
    [
        ([3, 3], [1, 1], [2, 2], [0, 0, 0, 0], 0),
        ([3, 2], [2, 1], [2, 3], [1, 1, 2, 0], 0),
        ([2, 3], [3, 2], [3, 1], [0, 2, 1, 1], 1),
        ([1, 3], [2, 1], [2, 2], [0, 1, 0, 1], 0),
        ([1, 2], [1, 2], [3, 1], [0, 0, 0, 1], 0),
    ],
)
@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_a_dilated_pool_becomes_plain_and_stays_equal(
    kernel: list[int], strides: list[int], dilations: list[int], pads: list[int], ceil: int, precision: str
) -> None:
    b = GraphBuilder(11)
    t = b.node("Conv", [b.input("x", [1, 3, 11, 12]), b.weight(3, 3, 1, 1)])
    window = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "ceil_mode": ceil}
    b.node("MaxPool", [t], "y", **window)
    b.output("y", ["n", "c", "h", "w"])
    result = transform(b.model(), precision=precision)
    assert all(c.max_abs == 0 for c in result.proof.comparisons) and result.proof.batch == "proven"
    for node in result.model.graph.node:
        assert not any(a.name == "dilations" and any(d != 1 for d in a.ints) for a in node.attribute)
