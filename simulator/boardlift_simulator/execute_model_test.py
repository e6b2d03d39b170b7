import numpy as np

from boardlift_simulator.execute_model import _as_declared, in_node_order
from boardlift_simulator.read_model import Value
from boardlift_simulator.vendor_tools import Feature, Subgraph


def test_an_index_computed_in_float_leaves_as_the_integer_it_stands_for():
    out = _as_declared(np.array([[2.0]], np.float32), Value("class_ids", "INT64", (1,)))
    assert out.dtype == np.int64
    assert out.tolist() == [2]


def test_an_undeclared_tensor_stays_as_it_is():
    value = np.zeros((2, 3), np.int8)
    assert _as_declared(value, None) is value


def test_results_go_by_name_as_the_code_has_its_own_order():
    features = tuple(Feature(name, (1,), (1,), "int8", 1, "") for name in ("b", "a"))
    graph = Subgraph("sub", "bayes-e", (), features)
    results = [np.array([2]), np.array([1])]
    assert [int(r[0]) for r in in_node_order(graph, ("a", "b"), results)] == [1, 2]
    assert [int(r[0]) for r in in_node_order(graph, ("x", "y"), results)] == [2, 1]
