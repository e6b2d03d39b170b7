import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass


def _norm(b: GraphBuilder, x: str, channels: int, out: str = "y") -> str:
    rng = b.rng
    parts = [rng.uniform(0.5, 1.5, channels), rng.normal(0, 1, channels), rng.normal(0, 1, channels)]
    parts.append(rng.uniform(0.1, 2.0, channels))
    return b.node("BatchNormalization", [x, *[b.constant(p.astype(np.float32)) for p in parts]], out, epsilon=1e-3)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose", "Gemm"])
def test_statistics_go_into_the_weights(kind: str, bias: bool) -> None:
    b = GraphBuilder(11)
    if kind == "Gemm":
        x = b.input("x", [1, 6])
        t = b.node("Gemm", [x, b.weight(6, 8), *([b.weight(8)] if bias else [])], beta=0.5)
        shape = [1, 8]
    else:
        x = b.input("x", [1, 4, 5, 5])
        weight = b.weight(8, 2, 3, 3) if kind == "Conv" else b.weight(4, 4, 3, 3)
        t = b.node(kind, [x, weight, *([b.weight(8)] if bias else [])], group=2)
        shape = [1, 8, 3, 3] if kind == "Conv" else [1, 8, 7, 7]
    _norm(b, t, 8)
    b.output("y", shape)
    run = run_one_pass(b.model(), "fold-batchnorm")
    assert run.operators == [kind]
    assert run.max_rel < 1e-5


def test_a_shared_convolution_is_left_alone_with_the_reason() -> None:
    b = GraphBuilder(11)
    t = b.node("Conv", [b.input("x", [1, 4, 5, 5]), b.weight(4, 4, 1, 1)], "t")
    _norm(b, t, 4)
    b.output("y", [1, 4, 5, 5])
    b.output("t", [1, 4, 5, 5])
    run = run_one_pass(b.model(), "fold-batchnorm")
    assert run.operators == ["Conv", "BatchNormalization"]
    assert "read elsewhere" in run.result.skipped[0].reason
