from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from boardlift_transform.edit_graph import Array
from boardlift_transform.equivalence import Session
from boardlift_transform.opset import downgrade
from boardlift_transform.refusal import Refusal
from boardlift_transform.transform_model import transform


def _run(model: onnx.ModelProto, x: Array) -> Array:
    return Session(model.SerializeToString()).run({"x": x})["y"]


def _pooled(operator: str, opset: int, sizes: list[int], declared: bool = True, **attributes: Any) -> onnx.ModelProto:
    """Two pools in a row and a Conv, with the shapes that the runtime gives them, as exporters write them."""
    weight = helper.make_tensor("w", 1, [4, 2, 1, 1], np.linspace(-1, 1, 8))
    pool: dict[str, Any] = {"ceil_mode": 1, **attributes}
    nodes = [
        helper.make_node(operator, ["x"], ["p"], "first", **pool),
        helper.make_node(operator, ["p"], ["q"], "second", **pool),
        helper.make_node("Conv", ["q", "w"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, 1, None) for n in "pqy"]
    inputs = [helper.make_tensor_value_info("x", 1, [1, 2, *sizes])]

    def model(outputs: list[onnx.ValueInfoProto], inner: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        graph = helper.make_graph(nodes, "g", inputs, outputs, [weight], value_info=inner)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    session = Session(model(info, []).SerializeToString())
    found = list(session.run({"x": np.zeros([1, 2, *sizes], np.float32)}).values())
    told = [helper.make_tensor_value_info(n, 1, f.shape) for n, f in zip("pqy", found, strict=True)]
    return model(told[2:], told[:2] if declared else [])


def _geometries() -> Iterator[tuple[str, list[int], dict[str, Any]]]:
    rng = np.random.default_rng(7)
    for operator in ("MaxPool", "AveragePool") * 100:
        kernel, strides = rng.integers(1, 4, 2).tolist(), rng.integers(1, 5, 2).tolist()
        pads = [int(rng.integers(0, k)) for k in kernel * 2]
        more = {"count_include_pad": int(rng.integers(0, 2))} if operator == "AveragePool" else {}
        sizes = rng.integers(9, 16, 2).tolist()
        yield operator, sizes, {"kernel_shape": kernel, "strides": strides, "pads": pads, **more}


def test_the_windows_are_those_of_the_runtime() -> None:
    served = 0
    for operator, sizes, attributes in _geometries():
        model = _pooled(operator, 17, sizes, **attributes)
        x = np.random.default_rng(0).normal(size=[1, 2, *sizes]).astype(np.float32)
        try:
            made = downgrade(model, 11)
        except Refusal as refusal:  # shorter padding cannot leave out what no window reads
            assert refusal.reason == "INVALID_MODEL", refusal
            continue
        served += 1
        onnx.checker.check_model(made, full_check=True)
        np.testing.assert_allclose(_run(made, x), _run(model, x), rtol=0, atol=1e-6)
    assert served >= 190


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("opset", [11, 13, 17, 21, 22])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("sizes", [[5, 5], [5, 6]])
def test_a_pool_whose_last_window_starts_in_the_padding_is_taken(
    operator: str, opset: int, declared: bool, sizes: list[int]
) -> None:
    model = _pooled(operator, opset, sizes, declared, kernel_shape=[2, 2], strides=[3, 3], pads=[1, 1, 1, 1])
    result = transform(model)
    assert result.proof.passed
    assert result.model.graph.output[0].type == model.graph.output[0].type
