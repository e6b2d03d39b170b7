from typing import Any

import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform


def packed(bits: int, depth: int, zeros: str, bias: bool = False, **more: Any) -> GraphBuilder:
    """`[2, depth]` times 12 columns of packed weights in blocks of 32."""
    b, blocks = GraphBuilder(17), -(-depth // 32)
    b.domains = ("com.microsoft",)
    names = [b.input("x", [2, depth])]
    names.append(b.constant(b.rng.integers(0, 256, (12, blocks, 4 * bits)).astype(np.uint8)))
    names.append(b.constant(b.rng.uniform(0.01, 0.03, 12 * blocks).astype(np.float32)))
    if zeros == "packed":
        names.append(b.constant(b.rng.integers(0, 256, 12 * -(-blocks * bits // 8)).astype(np.uint8)))
    elif zeros == "float":
        names.append(b.constant(b.rng.uniform(5, 9, (12, blocks)).astype(np.float32)))
    if bias:
        names += [""] * (5 - len(names)) + [b.weight(12)]
    attributes = {"K": depth, "N": 12, "bits": bits, "block_size": 32, **more}
    b.node("MatMulNBits", names, "y", domain="com.microsoft", **attributes)
    b.output("y", [2, 12])
    return b


@pytest.mark.parametrize(
    "bits, depth, zeros, bias",
    [
        (4, 96, "", False),
        (8, 96, "", True),
        (4, 96, "packed", True),
        (8, 96, "packed", False),
        (4, 96, "float", False),
        (4, 80, "packed", False),
        (8, 80, "", False),
    ],
)
def test_weights_of_a_few_bits_are_a_product_of_floats(bits: int, depth: int, zeros: str, bias: bool) -> None:
    run = run_one_pass(packed(bits, depth, zeros, bias).model(), "unpack-weights")
    assert run.operators == ["MatMul"] + ["Add"] * bias
    assert run.max_rel < 1e-5


def test_rounding_of_the_input_that_goes_is_measured_and_told() -> None:
    rng = np.random.default_rng(1)
    samples = {"x": rng.standard_normal((4, 2, 96)).astype(np.float32)}
    result = transform(packed(4, 96, "", accuracy_level=4).model(), samples=samples)
    assert "QUANTISATION_REMOVED" in {finding.code for finding in result.findings}


def test_reordered_rows_stay() -> None:
    b = packed(4, 96, "")
    order = b.constant((np.arange(96) // 32).astype(np.int32))
    b.nodes[-1].input.extend(["", order])
    assert not run_one_pass(b.model(), "unpack-weights").result.applied
