"""The real tool: what it gets wrong behind calibration, and what it gets right."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from boardlift_compiler import measure_parting as module
from boardlift_compiler.explain_failure import make_failure
from boardlift_compiler.measure_parting import measure_parting
from boardlift_compiler.prepare_calibration import CalibrationSet
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec

QUICK = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1"))


def clipped(first_high: float, second: tuple[float, float]):
    """Conv, times 3, a one-sided Clip, a two-sided one, Conv: ``[1, 4, 6, 8]``."""
    rng = np.random.default_rng(0)
    values = {"w1": rng.normal(0, 0.5, (4, 4, 1, 1)), "w2": rng.normal(0, 0.5, (4, 4, 1, 1)), "three": 3.0,
              "high": first_high, "low2": second[0], "high2": second[1]}  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1"),
        helper.make_node("Mul", ["a", "three"], ["b"], name="times"),
        helper.make_node("Clip", ["b", "", "high"], ["c"], name="first"),
        helper.make_node("Clip", ["c", "low2", "high2"], ["d"], name="second"),
        helper.make_node("Conv", ["d", "w2"], ["y"], name="conv2"),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 6, 8]) for n in ("x", "y")]
    weights = [numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in values.items()]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)


@pytest.mark.toolchain
@pytest.mark.xdist_group("compiler-tool")
@pytest.mark.parametrize(("preset", "at_a_time"), [("int8", 10**6), ("int16", 10**6), ("int8", 200)])
async def test_a_clip_that_the_tool_drops_is_told_and_located(build, preset, at_a_time, monkeypatch):
    monkeypatch.setattr(module, "MOST_ELEMENTS", at_a_time)  # a tensor has 192: the last row goes in parts of one
    outcome = await build(clipped(0.8, (-1.0, 1.0)), replace(QUICK, preset=preset))
    assert outcome.failure is None
    assert all(row.cosine > 0.99 for row in outcome.facts.outputs)  # the tool has seen nothing
    (found,) = [f for f in outcome.findings if f.code == "INTEGERS_PART"]
    assert (found.severity, found.subject) == ("error", "conv2") and "behind second" in found.message


@pytest.mark.toolchain
@pytest.mark.xdist_group("compiler-tool")
async def test_a_clip_that_the_tool_keeps_is_fine(build):
    outcome = await build(clipped(0.8, (-1.0, 1.25)), QUICK)
    assert {f.code for f in outcome.findings} <= {"CALIBRATION_FEW_SAMPLES"}


async def test_a_program_that_fails_is_said(toolchain, tmp_path, monkeypatch):
    async def refuse(*args, **more):
        return make_failure("SIMULATION_FAILED", "", ("no such kernel",))

    monkeypatch.setattr("boardlift_compiler.measure_parting.run_vendor_program", refuse)
    spec = CompileSpec(inputs=(InputSpec("x"),))
    data = CalibrationSet({"x": np.zeros((2, 1, 4, 6, 8), np.float32)}, spec, 2, ())
    (tmp_path / "m.onnx").write_bytes(clipped(0.8, (-1.0, 1.0)).SerializeToString())
    with run_folder(tmp_path / "runs") as folder:
        found = await measure_parting(toolchain, {"float": tmp_path / "m.onnx"}, data, folder, None)
    assert [f.code for f in found] == ["INTEGERS_NOT_COMPARED"] and "no such kernel" in found[0].message
