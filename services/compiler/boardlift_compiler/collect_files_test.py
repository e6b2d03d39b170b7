"""What is kept of real builds, and what becomes of one whose product went bad."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from boardlift_servicekit.tool import run_tool

from boardlift_compiler.run_mapper import Hooks
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("compiler-tool")]
QUICK = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1"))


async def test_everything_that_the_tool_left_is_kept(build, models):
    outcome = await build(models.policy((225, 32, 12)), replace(QUICK, dump_calibration_data=True))
    assert b"Read raw file" in outcome.kept["hb_mapper_makertbin.log"]
    with zipfile.ZipFile(io.BytesIO(outcome.kept["calibration_data.zip"])) as archive:
        names = archive.namelist()
        assert names[0] == "calibration_data/obs_4d/0.npy"
        assert len(names) == 16
        first = np.load(io.BytesIO(archive.read(names[0])))
    assert np.array_equal(first.ravel(), models.samples(models.policy((225, 32, 12)))["obs_4d"][0].ravel())


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "COMPILED_MODEL_UNREADABLE"),
        (lambda path: path.write_bytes(b""), "COMPILED_MODEL_UNREADABLE"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"bayes-e", b"bayes-x")), "MARCH_MISMATCH"),
        (lambda path: path.unlink(), "NO_COMPILED_MODEL"),
    ],
    ids=["cut", "empty", "of another chip", "gone"],
)
async def test_a_compiled_model_that_went_bad_is_no_success(build, models, damage, code):
    """The tool ends with 0 and its closing line; what it left is then damaged on disk."""

    async def launch(command, on_line):
        result = await run_tool(command, on_line)
        damage(command.cwd / "out" / "model.bin")
        return result

    outcome = await build(models.policy((225, 32, 12)), QUICK, hooks=Hooks(launcher=launch))
    assert outcome.run.end.exit_code == 0
    assert (outcome.failure.code, outcome.failure.user_fault) == (code, False)
    assert list(outcome.kept) == ["hb_mapper_makertbin.log", "console.log"]
