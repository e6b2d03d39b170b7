"""No quadratic step: time per node is flat. Processor time, so that a busy machine does not decide."""

import time

import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.transform_model import transform


def _seconds_per_node(nodes: int) -> float:
    b = GraphBuilder(17)
    x, w, bias = b.input("x", ["batch", 16]), b.weight(16, 16), b.weight(16)
    for _ in range(nodes // 2):
        x = b.node("Elu", [b.node("Gemm", [x, w, bias], transB=1)])
    b.node("Identity", [x], "y")
    b.output("y", ["batch", 16])
    data = b.model().SerializeToString()
    start = time.process_time()
    result = transform(data, verify=False)
    elapsed = time.process_time() - start
    assert len(result.model.SerializeToString()) < 4 * len(data)
    return elapsed / nodes


@pytest.mark.timeout(300)
def test_time_per_node_is_flat() -> None:
    _seconds_per_node(200)
    small, large = _seconds_per_node(1000), _seconds_per_node(8000)
    assert large < 2.5 * small, (small, large)
