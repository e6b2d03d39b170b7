import numpy as np

from boardlift_simulator.execute_model import _as_declared
from boardlift_simulator.read_model import Value


def test_an_index_computed_in_float_leaves_as_the_integer_it_stands_for():
    out = _as_declared(np.array([[2.0]], np.float32), Value("class_ids", "INT64", (1,)))
    assert out.dtype == np.int64
    assert out.tolist() == [2]


def test_an_undeclared_tensor_stays_as_it_is():
    value = np.zeros((2, 3), np.int8)
    assert _as_declared(value, None) is value
