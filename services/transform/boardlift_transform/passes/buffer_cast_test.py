from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass
from boardlift_transform.transform_model import transform


def _policy(flag: bool) -> onnx.ModelProto:
    """Observations beside a flag (a command that equals 1), or beside a command that is cut to whole numbers."""
    b = GraphBuilder(11)
    parts = [b.input("obs", [1, 12])]
    if flag:
        mode = b.input("mode", [1, 4], TensorProto.INT64)
        parts.append(b.node("Cast", [b.node("Equal", [mode, b.constant(np.asarray(1))])], to=TensorProto.FLOAT))
    else:
        whole = b.node("Cast", [b.input("mode", [1, 4])], to=TensorProto.INT64)
        parts.append(b.node("Cast", [whole], to=TensorProto.FLOAT))
    t = b.node("Gemm", [b.node("Concat", parts, axis=1), b.weight(32, 16), b.weight(32, scale=0.1)], transB=1)
    b.node("Tanh", [b.node("Gemm", [b.node("Relu", [t]), b.weight(4, 32), b.weight(4, scale=0.1)], transB=1)], "y")
    b.output("y", [1, 4])
    return b.model()


def test_a_flag_gets_a_scale_of_its_own() -> None:
    run = run_one_pass(_policy(True), "buffer-cast")
    assert run.operators[:4] == ["Equal", "Cast", "Add", "Concat"]
    assert run.max_rel == 0


def test_a_flag_behind_moves() -> None:
    b = GraphBuilder(11)
    flag = b.node("Cast", [b.node("Not", [b.input("on", [4], TensorProto.BOOL)])], to=TensorProto.FLOAT)
    b.node("Concat", [b.input("obs", [1, 3]), b.node("Reshape", [flag, b.constant([1, 4])])], "y", axis=1)
    b.output("y", [1, 7])
    run = run_one_pass(b.model(), "buffer-cast")
    assert run.operators[-2:] == ["Add", "Concat"]
    assert run.max_rel == 0


def test_floats_are_cut_towards_zero() -> None:
    b = GraphBuilder(11)
    b.node("Cast", [b.node("Cast", [b.input("x", [1, 64])], to=TensorProto.INT64)], "y", to=TensorProto.FLOAT)
    b.output("y", [1, 64])
    x = np.linspace(-4, 4, 64, dtype=np.float32)[None]
    run = run_one_pass(b.model(), "buffer-cast", samples=[{"x": x}, {"x": np.rint(x)}])
    assert "Cast" not in run.operators
    assert run.max_rel == 0


def test_what_is_float_all_along_is_left_alone() -> None:
    b = GraphBuilder(11)
    b.node("Concat", [b.input("x", [1, 4]), b.node("Relu", [b.input("z", [1, 4])])], "y", axis=1)
    b.output("y", [1, 8])
    assert run_one_pass(b.model(), "buffer-cast").result.applied == []


@pytest.mark.toolchain
@pytest.mark.timeout(600)
@pytest.mark.parametrize("flag", [True, False], ids=["flag", "cut"])
def test_the_tool_keeps_the_observations_beside_it(tool: Any, flag: bool) -> None:
    model, rng = _policy(flag), np.random.default_rng(0)
    draw = rng.integers(0, 3, (24, 1, 4)) if flag else rng.uniform(-3, 3, (24, 1, 4))
    samples = {"obs": rng.standard_normal((24, 1, 12)).astype(np.float32), "mode": draw.astype(np.float32)}
    errors = []
    for skipped in (["buffer-cast"], []):
        own = {n: a.astype(np.int64) if flag and n == "mode" else a for n, a in samples.items()}
        result = transform(model, precision="int16", samples=own, skip_passes=skipped)
        fed = {e.after.name: samples[e.before.name].reshape(-1, *e.after.shape)
               for e in result.io_map if e.direction == "input" and e.after is not None}  # fmt: skip
        run = tool.compile(result.model, fed, int16=True)
        assert run.exit_code == 0
        made, differing = tool.execute(run, {n: a[0] for n, a in fed.items()})
        want = result.proof.reference[0]["y"].reshape(-1)
        errors.append(float(np.abs(made["y"].reshape(-1) - want).max()))
    assert differing == 0 or not flag  # the compiled Floor is not bit-equal to its simulation: the bit check says so
    assert errors[0] > 0.05 > 0.01 > errors[1]
