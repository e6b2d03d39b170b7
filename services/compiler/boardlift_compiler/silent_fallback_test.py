"""Real builds of what the vendor's tool drops in silence, exit code 0: each is an error that names the node."""

from dataclasses import replace

import numpy as np
import pytest
from boardlift_servicekit.tool import run_tool

from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, NodeOverride

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("compiler-tool")]
QUICK = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O0"))
INT16 = replace(QUICK, preset="int16")
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}


def overridden(*overrides):
    return replace(QUICK, nodes=overrides)


def words(*optimization, **more):
    return QUICK.with_calibration(optimization=optimization, **more)


CASES = {
    "int16: a head of more than 256 inputs": (lambda m: m.policy((225, 64, 320, 12)), INT16, "INT16_FELL_BACK", "fc2"),
    "int16: GlobalAveragePool": (lambda m: m.small("GlobalAveragePool"), INT16, "INT16_FELL_BACK", "op"),
    "int16: AveragePool": (lambda m: m.small("AveragePool", attributes=POOL), INT16, "INT16_FELL_BACK", "op"),
    "int16: MatMul of two tensors": (lambda m: m.attention(), INT16, "INT16_FELL_BACK", "mm"),
    "int16 for one node": (
        lambda m: m.small("GlobalAveragePool"), overridden(NodeOverride("op", input_type="int16")), "INT16_FELL_BACK",
        "op",
    ),
    "int16 for one input": (
        lambda m: m.small("GlobalAveragePool"), overridden(NodeOverride("op", input_types={0: "int16"})),
        "INT16_FELL_BACK", "op",
    ),
    "int16 for one output": (
        lambda m: m.small("GlobalAveragePool"), overridden(NodeOverride("c1", output_type="int16")), "INT16_FELL_BACK",
        "c1",
    ),
    "BPU by node_info": (lambda m: m.small("Neg"), overridden(NodeOverride("op", "BPU")), "BPU_FELL_BACK", "op"),
    "BPU by run_on_bpu": (lambda m: m.two_islands(), words(run_on_bpu=("sm",)), "BPU_FELL_BACK", "sm"),
    "BPU by the tool's words": (
        lambda m: m.two_islands(), words("set_Softmax_input_int16", "set_Softmax_output_int16"), "BPU_FELL_BACK", "sm",
    ),
}  # fmt: skip


async def build(toolchain, put, tmp_path, model, spec, launcher=run_tool):
    path, data = put(model, count=8)
    with run_folder(tmp_path / "runs") as folder:
        return await compile_model(
            toolchain, CompileInputs(path, spec, data, 1), folder, Limits(timeout_s=120), Hooks(launcher=launcher)
        )


@pytest.mark.parametrize("name", CASES)
async def test_what_the_tool_drops_fails_by_name(toolchain, put, tmp_path, models, name):
    make, spec, code, node = CASES[name]
    outcome = await build(toolchain, put, tmp_path, make(models), spec)
    assert outcome.failure is None and outcome.run.end.exit_code == 0
    assert (code, node) in [(f.code, f.subject) for f in outcome.findings if f.severity == "error"]


async def test_fewer_samples_read_than_given_fail(toolchain, put, tmp_path, models):
    async def lose_one(command, on_line):
        samples = sorted(command.cwd.glob("calibration0_*/*"))
        if "makertbin" not in command.argv:
            return await run_tool(command, on_line)
        assert len(samples) == 8
        samples[-1].unlink()
        return await run_tool(command, on_line)

    outcome = await build(toolchain, put, tmp_path, models.policy((225, 32, 12)), QUICK, lose_one)
    assert outcome.failure is None and outcome.facts.samples == 7
    (lost,) = [f for f in outcome.findings if f.severity == "error"]
    assert lost.code == "SAMPLES_NOT_READ" and "8 samples were given and the tool read 7" in lost.message


async def test_samples_that_are_not_ours_fail(toolchain, put, tmp_path, models):
    async def replace_first(command, on_line):
        first = min(command.cwd.glob("calibration0_*/*"))
        first.write_bytes(np.full(225, 0.5, np.float32).tobytes())
        return await run_tool(command, on_line)

    outcome = await build(toolchain, put, tmp_path, models.policy((225, 32, 12)), QUICK, replace_first)
    assert [f.code for f in outcome.findings if f.severity == "error"] == ["SAMPLES_NOT_OURS"]
