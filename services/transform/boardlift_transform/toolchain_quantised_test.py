"""The float model inside a quantised one through the real tool: estimated time with and without needless Clips."""

import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.transform_model import transform

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]


def _pair(b: GraphBuilder, x: str, low: float, high: float) -> str:
    """x quantised to uint8 between two numbers, and back."""
    step = (high - low) / 255
    numbers = [b.constant(np.asarray(step, np.float32)), b.constant(np.asarray(round(-low / step), np.uint8))]
    return b.node("DequantizeLinear", [b.node("QuantizeLinear", [x, *numbers]), *numbers])


def _swishes(count: int = 3) -> onnx.ModelProto:
    """Convolutions with HardSwish behind each, as a static quantiser leaves them."""
    b = GraphBuilder(13, 8, seed=1)
    t = b.input("x", [1, 16, 32, 32])
    for _ in range(count):
        t = b.node("Conv", [t, b.weight(16, 16, 3, 3), b.weight(16)], pads=[1, 1, 1, 1])
        t = _pair(b, t, -2, 2)
        gate = _pair(b, b.node("HardSigmoid", [t], alpha=1 / 6), 0, 1)
        t = b.node("Mul", [t, gate])
    b.node("Conv", [t, b.weight(16, 16, 1, 1), b.weight(16)], "y")
    b.output("y", [1, 16, 32, 32])
    return b.model()


def _with_clips(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same with a Clip to 0..1 behind every HardSigmoid."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    ends = [helper.make_tensor(n, onnx.TensorProto.FLOAT, [], [v]) for n, v in (("zero", 0.0), ("one", 1.0))]
    made.graph.initializer.extend(ends)
    nodes = []
    for node in made.graph.node:
        nodes.append(node)
        if node.op_type == "HardSigmoid":
            whole, open_end = node.output[0], f"{node.output[0]}_open"
            node.output[0] = open_end
            nodes.append(helper.make_node("Clip", [open_end, "zero", "one"], [whole], f"{node.name}_clip"))
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    onnx.checker.check_model(made, full_check=True)
    return made


def test_a_clip_that_nothing_reaches_costs_time(tool: Any) -> None:
    model = transform(_swishes(), precision="int8").model
    kinds = [n.op_type for n in model.graph.node]
    assert (kinds.count("HardSigmoid"), kinds.count("Clip")) == (3, 3)
    samples = {"x": np.random.default_rng(5).standard_normal((8, 1, 16, 32, 32)).astype(np.float32)}
    took = {}
    for name, proto in (("as it is", model), ("clipped", _with_clips(model))):
        run = tool.compile(proto, samples)
        assert run.exit_code == 0, run.errors
        took[name] = sum(float(t) for t in re.findall(r"latency = ([\d.]+) us", run.log))
    assert 1.1 * took["as it is"] < took["clipped"], took
