"""Attention through the real tool: estimated time and error, with and without the passes that lay it out."""

import re
from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.equivalence import Session

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]

PASSES = ["split-joint-heads", "features-to-channels", "merge-moves"]
TOKENS, HEADS, DEPTH = 33, 2, 16
WIDTH = HEADS * DEPTH


class Writer(GraphBuilder):
    """One block of a vision transformer on `[1,33,32]`, as timm's code is exported."""

    def linear(self, x: str, c_in: int, c_out: int) -> str:
        return self.node(
            "Add", [self.node("MatMul", [x, self.weight(c_in, c_out, scale=c_in**-0.5)]), self.weight(c_out)]
        )

    def norm(self, x: str) -> str:
        scale, shift = (self.constant((1 + 0.3 * self.rng.standard_normal(WIDTH)).astype(np.float32)) for _ in "gb")
        d = self.node("Sub", [x, self.node("ReduceMean", [x], axes=[-1])])
        v = self.node("ReduceMean", [self.node("Mul", [d, d])], axes=[-1])
        x = self.node("Div", [d, self.node("Sqrt", [self.node("Add", [v, self.constant(np.float32(1e-5))])])])
        return self.node("Add", [self.node("Mul", [x, scale]), shift])

    def attention(self, x: str) -> str:
        t = self.node("Reshape", [self.linear(x, WIDTH, 3 * WIDTH), self.constant([1, TOKENS, 3, HEADS, DEPTH])])
        t = self.node("Transpose", [t], perm=[2, 0, 3, 1, 4])
        q, k, v = (self.node("Gather", [t, self.constant(np.asarray(i))], axis=0) for i in range(3))
        t = self.node("MatMul", [q, self.node("Transpose", [k], perm=[0, 1, 3, 2])])
        t = self.node("Mul", [t, self.constant(np.float32(DEPTH**-0.5))])
        t = self.node("MatMul", [self.node("Softmax", [t], axis=3), v])
        t = self.node("Reshape", [self.node("Transpose", [t], perm=[0, 2, 1, 3]), self.constant([1, TOKENS, WIDTH])])
        return self.linear(t, WIDTH, WIDTH)


def block() -> onnx.ModelProto:
    b = Writer(11, 7, seed=1)
    x = b.input("x", [1, TOKENS, WIDTH])
    t = b.node("Add", [x, b.attention(b.norm(x))])
    h = b.node("Relu", [b.linear(b.norm(t), WIDTH, 2 * WIDTH)])
    b.node("Add", [t, b.linear(h, 2 * WIDTH, WIDTH)], "y")
    b.output("y", [1, TOKENS, WIDTH])
    return b.model()


def with_and_without(
    tool: Any, model: onnx.ModelProto, skipped: list[str], int16: bool
) -> tuple[dict[bool, float], dict[bool, float], list[str]]:
    """Build with the passes (True) and without: us (estimated), cosine (simulated, code equal), nodes on the CPU."""
    took, cosine, on_cpu = {}, {}, []
    samples = np.random.default_rng(3).standard_normal((8, 1, TOKENS, WIDTH)).astype(np.float32)
    want = Session(model.SerializeToString()).run({"x": samples[:1].reshape(1, TOKENS, WIDTH)})["y"].ravel()
    for skip in (skipped, []):
        made = transform(model, precision="int16" if int16 else "int8", skip_passes=skip).model
        given = made.graph.input[0].name
        run = tool.compile(made, {given: samples}, int16=int16, level="O1")
        assert run.exit_code == 0, run.errors
        on_cpu += run.on_cpu
        found = re.findall(r"latency = ([\d.]+) us", run.log)
        assert found, run.log[-2000:]
        took[not skip] = sum(float(t) for t in found)
        got, differing = tool.execute(run, {given: samples[:1]})
        assert differing == 0
        flat = got["y"].ravel()
        cosine[not skip] = float(flat @ want / np.linalg.norm(flat) / np.linalg.norm(want))
    return took, cosine, on_cpu


@pytest.mark.parametrize("int16", [False, True])
def test_a_block_of_attention_takes_a_fraction_of_the_time_and_is_no_worse(tool: Any, int16: bool) -> None:
    took, cosine, _ = with_and_without(tool, block(), PASSES, int16)
    assert took[True] < took[False] / 2, took
    assert cosine[True] > cosine[False] - 0.001 and cosine[True] > 0.99, cosine


@pytest.mark.parametrize(("skipped", "gain"), [("rows-to-channels", 0.9), ("fold-scale", 0.95), ("fold-affine", 0.95)])
def test_an_int16_attention_gains_by_each_pass_alone(tool: Any, skipped: str, gain: float) -> None:
    took, cosine, on_cpu = with_and_without(tool, block(), [skipped], int16=True)
    assert on_cpu == [] and 0 < took[True] < took[False] * gain, took
    assert cosine[True] > cosine[False] - 1e-4 and cosine[True] > 0.995, cosine


@pytest.mark.parametrize(("approximate", "gain"), [("none", 0.75), ("tanh", 0.75)])
@pytest.mark.parametrize("int16", [False, True])
def test_gelu_of_opset_20_takes_less_and_is_no_worse(tool: Any, approximate: str, gain: float, int16: bool) -> None:
    b = Writer(20, 9, seed=2)
    h = b.node("Gelu", [b.linear(b.input("x", [1, TOKENS, WIDTH]), WIDTH, 6 * WIDTH)], approximate=approximate)
    b.node("Add", [b.linear(h, 6 * WIDTH, WIDTH), b.weight(WIDTH)], "y")
    b.output("y", [1, TOKENS, WIDTH])
    took, cosine, on_cpu = with_and_without(tool, b.model(), ["suit-gelu"], int16)
    assert on_cpu == [] and 0 < took[True] < took[False] * gain, took
    assert cosine[True] > cosine[False] - 1e-4 and cosine[True] > 0.995, cosine
