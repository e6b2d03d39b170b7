"""CPU operators against plain definitions."""

import numpy as np
import pytest

from boardlift_simulator.errors import BoardError
from boardlift_simulator.read_model import Node
from boardlift_simulator.run_cpu_nodes import run_cpu_node


def run(op: str, *inputs: np.ndarray, **attributes: object) -> np.ndarray:
    return run_cpu_node(Node("n", op, (), (), attributes), list(inputs))[0]


def test_quantize_rounds_half_to_even_and_clips() -> None:
    x = np.array([0.5, 1.5, -0.5, 200, -200], np.float32)
    assert run("Quantize", x, np.array([1.0], np.float32), bits=8).tolist() == [0, 2, 0, 127, -128]


def test_quantize_int16_per_channel() -> None:
    x = np.ones((1, 2, 1, 2), np.float32)
    got = run("Quantize", x, np.array([0.5, 0.25], np.float32), bits=16)
    assert got.dtype == np.int16
    assert got.reshape(-1).tolist() == [2, 2, 4, 4]


def test_dequantize_follows_the_axis() -> None:
    x = np.ones((1, 2, 2, 3), np.int32)
    scale = np.array([1, 2, 3], np.float32)
    assert run("Dequantize", x, scale, axis=3)[0, 0, 0].tolist() == [1, 2, 3]


def test_softmax_flattens_from_its_axis_on() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    got = run("Softmax", x, axis=1)
    assert got.shape == x.shape
    assert got.reshape(2, -1).sum(1) == pytest.approx([1, 1], abs=1e-6)


def test_grouped_conv_1d() -> None:
    rng = np.random.default_rng(1)
    x, w, b = rng.standard_normal((1, 8, 5)), rng.standard_normal((4, 2, 3)), rng.standard_normal(4)
    got = run("Conv", x, w, b, num_group=4, kernel=[3], stride=[2], pad=[1])
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1)])
    want = [
        [sum((padded[0, 2 * o : 2 * o + 2, s * 2 : s * 2 + 3] * w[o]).ravel()) + b[o] for s in range(3)]
        for o in range(4)
    ]
    assert got[0] == pytest.approx(np.array(want), abs=1e-5)


def test_reshape_zero_and_minus_one() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    assert run("Reshape", x, np.array([0, -1])).shape == (2, 12)


def test_unknown_operator_is_named() -> None:
    with pytest.raises(BoardError, match="RoiAlign"):
        run("RoiAlign", np.zeros(1))
