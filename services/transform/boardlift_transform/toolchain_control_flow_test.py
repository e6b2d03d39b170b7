"""Loops and branches: what the tool dies on compiles after the passes, and its code equals its simulation."""

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from boardlift_transform import transform
from boardlift_transform.toolchain_test import error_of

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]

_HEAD = """<ir_version: 7, opset_import: ["" : 11]>
g (float[1,16,8,8] x) => (float[1,16,8,8] y) <int64 n = {3}, float zero = {0}, float most = {0.9}>"""

BRANCHES = """{
  total = ReduceMean <keepdims: int = 0> (x)
  c = Greater (total, zero)
  z = If (c) <then_branch = p () => (float[1,16,8,8] a) { m = Conv (x, w) a = Tanh (m) },
              else_branch = q () => (float[1,16,8,8] e) { o = Conv (x, v) e = Relu (o) }>
  y = Conv (z, v)
}"""

BREAK = """{
  z = Loop (n, , x) <body = b (int64 i, bool c, float[1,16,8,8] s) => (bool again, float[1,16,8,8] t) {
    m = Conv (s, w)
    t = Tanh (m)
    peak = ReduceMax <keepdims: int = 0> (t)
    again = Less (peak, most)
  }>
  y = Conv (z, v)
}"""


def _model(body: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(_HEAD + body)
    rng = np.random.default_rng(1)
    for name in ("w", "v"):
        weight = (rng.standard_normal((16, 16, 1, 1)) / 4).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    return model


@pytest.mark.parametrize(("body", "int16"), [(BRANCHES, False), (BRANCHES, True), (BREAK, True)])
def test_control_flow_that_the_tool_dies_on_runs_as_compiled_after_the_passes(
    tool: Any, body: str, int16: bool
) -> None:
    model = _model(body)
    assert tool.check(model).exit_code != 0
    error, differing = error_of(tool, model, transform(model).model, int16)
    assert differing == 0 and error < (0.02 if int16 else 0.05)
