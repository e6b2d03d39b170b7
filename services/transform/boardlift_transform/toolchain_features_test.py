"""Normalisations of tokens through the real tool, with and without the pass that folds them."""

import re
from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]

TOKENS, WIDTH = 49, 64


def tokens() -> onnx.ModelProto:
    """Three linear layers with BatchNormalization over `[1,49,64]`, as LeViT has them."""
    b = GraphBuilder(17, seed=1)
    t = b.input("x", [1, TOKENS, WIDTH])
    for _ in range(3):
        h = b.node("MatMul", [t, b.weight(WIDTH, WIDTH)])
        h = b.node("Reshape", [h, b.constant([TOKENS, WIDTH])])
        spread = b.constant(b.rng.uniform(0.5, 2, WIDTH).astype(np.float32))
        h = b.node("BatchNormalization", [h, b.weight(WIDTH, scale=1), b.weight(WIDTH), b.weight(WIDTH), spread])
        t = b.node("Add", [t, b.node("HardSwish", [b.node("Reshape", [h, b.constant([1, TOKENS, WIDTH])])])])
    b.node("MatMul", [t, b.weight(WIDTH, 8)], "y")
    b.output("y", [1, TOKENS, 8])
    return b.model()


def test_normalised_tokens_take_less_time_and_keep_the_batch_of_calibration(tool: Any) -> None:
    samples = np.random.default_rng(3).standard_normal((8, 1, TOKENS, WIDTH)).astype(np.float32)
    took, batch = {}, {}
    for name, skip in (("before", ["fold-feature-norm"]), ("after", [])):
        result = transform(tokens(), skip_passes=skip)
        given = result.model.graph.input[0].name
        run = tool.compile(result.model, {given: samples}, level="O1")
        assert run.exit_code == 0, run.errors
        took[name] = sum(float(t) for t in re.findall(r"latency = ([\d.]+) us", run.log))
        batch[name] = result.proof.batch
    assert took["after"] < took["before"] and batch == {"before": "literal", "after": "proven"}, (took, batch)
