"""Run a quantised model in batches with the real toolchain."""

from __future__ import annotations

import io

import numpy as np
import pytest
from support.policy_models import moe_policy, observations

from boardlift_compiler import run_simulation as module
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("compiler-tool")]


async def test_a_batch_that_the_tool_wrote_as_one_is_freed_and_gives_the_same_bits(
    build, toolchain, tmp_path, monkeypatch
):
    model = moe_policy(True, gate=(48, 32, 16), head=(32, 16), experts=4, width=128, out=32)
    built = await build(model, CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1")))
    assert built.failure is None and any(n.type == "Reshape" for n in built.facts.nodes)
    (tmp_path / "q.onnx").write_bytes(built.kept["quantized_model.onnx"])
    (tmp_path / "m.bin").write_bytes(built.compiled)
    np.savez(tmp_path / "held.npz", obs=observations(48, 20, 7))
    answers = {}
    for batch in (16, 1):
        monkeypatch.setattr(module, "BATCH", batch)
        inputs = SimulateInputs(tmp_path / "q.onnx", tmp_path / "m.bin", tmp_path / "held.npz", None, built.spec, 1)
        with run_folder(tmp_path / "runs") as folder:
            outcome = await simulate_model(toolchain, inputs, folder)
            assert outcome.failure is None and outcome.bit_exact and outcome.quantized_outputs is not None
            data = outcome.quantized_outputs.read_bytes()
        answers[outcome.batched] = np.load(io.BytesIO(data))["actions"]
    assert set(answers) == {True, False}
    assert answers[True].shape == answers[False].shape and np.array_equal(answers[True], answers[False])
