from dataclasses import replace

import pytest

from boardlift_compiler.find_uncalibrated import find_uncalibrated
from boardlift_compiler.parse_tables import NodeRow
from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec

SPEC = CompileSpec(calibration=CalibrationSpec("load"), compiler=CompilerKnobs("O0"))


def rows(*thresholds):
    made = [NodeRow(f"n{k}", "BPU", 0, "HzSQuantizedConv", 0.99, text, "int8") for k, text in enumerate(thresholds)]
    return [NodeRow("HZ_PREPROCESS_FOR_x", "BPU", 0, "HzSQuantizedPreprocess", 0.99, "127.0", "int8"), *made]


def test_thresholds_of_the_models_own_are_fine_and_made_up_ones_are_not():
    assert find_uncalibrated(SPEC, rows("1.0", "4.2")) == []
    assert [f.severity for f in find_uncalibrated(SPEC, rows("1.0", "1.0"))] == ["error"]
    skipped = replace(SPEC, calibration=CalibrationSpec("skip"))
    assert [f.severity for f in find_uncalibrated(skipped, rows("3.1"))] == ["warning"]
    assert find_uncalibrated(replace(SPEC, calibration=CalibrationSpec("max")), rows("1.0")) == []


@pytest.mark.toolchain
@pytest.mark.xdist_group("compiler-tool")
@pytest.mark.parametrize(("method", "severity"), [("load", "error"), ("skip", "warning")])
async def test_the_real_tool_takes_both_without_a_word(toolchain, models, put, tmp_path, method, severity):
    path, _ = put(models.policy((225, 32, 12)))
    spec = replace(SPEC, calibration=CalibrationSpec(method))
    with run_folder(tmp_path / "runs") as folder:
        outcome = await compile_model(toolchain, CompileInputs(path, spec), folder, Limits(timeout_s=120), Hooks())
    assert outcome.failure is None
    assert [(f.code, f.severity) for f in outcome.findings if f.code == "NOT_CALIBRATED"] == [
        ("NOT_CALIBRATED", severity)
    ]
