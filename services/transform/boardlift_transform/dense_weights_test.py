import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_transform.edit_graph import Array
from boardlift_transform.refusal import Refusal
from boardlift_transform.transform_model import transform


def _model(indices: Array, *, as_node: bool = False) -> onnx.ModelProto:
    """A Gemm whose weight `[4, 8]` holds three entries."""
    values = numpy_helper.from_array(np.asarray([1.0, -2.0, 3.0], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices.astype(np.int64), "w_at"), [4, 8])
    nodes = [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)]
    if as_node:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, d]) for n, d in (("x", 8), ("y", 4))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    if not as_node:
        graph.sparse_initializer.append(sparse)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("as_node", [False, True])
@pytest.mark.parametrize("indices", [np.asarray([0, 9, 31]), np.asarray([[0, 0], [1, 1], [3, 7]])])
def test_entries_land_where_their_indices_say(indices: Array, as_node: bool) -> None:
    x = np.arange(1, 9, dtype=np.float32)[None]
    result = transform(_model(indices, as_node=as_node), samples={"x": x})
    assert result.proof.passed
    assert result.proof.reference[0]["y"].tolist() == [[1.0, -4.0, 0.0, 24.0]]


def test_an_index_outside_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        transform(_model(np.asarray([0, 9, 32])))
    assert caught.value.reason == "INITIALIZER_SIZE"
