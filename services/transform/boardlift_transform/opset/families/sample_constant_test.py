import itertools

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_transform import downgrade


def sampled(mode: str, padding: str, align: int, size: int = 6, places: int = 5) -> onnx.ModelProto:
    """GridSample of `[1, 3, size, size + 1]` at constant places, some of them outside."""
    rng = np.random.default_rng(3)
    grid = rng.uniform(-1.4, 1.4, (1, 4, places, 2)).astype(np.float32)
    grid[0, 0, 0], grid[0, 0, 1] = (-1, -1), (1, 1)
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], "sample", mode=mode, padding_mode=padding,
                            align_corners=align)  # fmt: skip
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size + 1]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 4, places]),
    ]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(grid, "grid")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


def outputs(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize(
    ("mode", "padding", "align"),
    list(itertools.product(["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"], [0, 1])),
)
def test_one_product_samples_as_onnxruntime_does(mode: str, padding: str, align: int) -> None:
    model = sampled(mode, padding, align)
    made = downgrade(model, 11)
    assert "MatMul" in (kinds := [n.op_type for n in made.graph.node]) and "GatherElements" not in kinds
    x = np.random.default_rng(0).standard_normal((1, 3, 6, 7)).astype(np.float32)
    np.testing.assert_allclose(outputs(made, x), outputs(model, x), atol=2e-5)


def test_a_large_image_at_many_places_is_gathered() -> None:
    made = downgrade(sampled("bilinear", "zeros", 0, size=200, places=10), 11)
    assert "GatherElements" in [n.op_type for n in made.graph.node]
