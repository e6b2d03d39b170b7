"""What the real tool says it read, on recorded logs, against what it was given."""

from dataclasses import replace

import pytest

from boardlift_compiler.parse_log import LogFacts, parse_log
from boardlift_compiler.read_back import find_unused_settings
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec

ECHO = {
    "input_type_rt": "nv12", "input_type_train": "rgb", "input_layout_rt": "None", "input_layout_train": "NCHW",
    "input_space&range": "regular", "norm_type": "data_mean_and_scale", "mean_value": "128.0,128.0,128.0,",
    "scale_value": "0.017,0.017,0.017,", "cal_data_type": "uint8", "input_shape": "1x3x32x48",
}  # fmt: skip
IMAGE = InputSpec("image", "rgb", "nv12", norm_type="data_mean_and_scale", mean=(128.0,) * 3, scale=(0.017,) * 3,
                  calibration_dtype="uint8", shape=(1, 3, 32, 48))  # fmt: skip
SPEC = CompileSpec(inputs=(IMAGE,), calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1"))
OPTIONS = "--O1 --debug --core-num 1 --fast --jobs 1"


def subjects(spec, options=OPTIONS, **echo):
    facts = LogFacts(inputs_echo={"image": {**ECHO, **echo}}, compiler_options=options)
    return [f.subject for f in find_unused_settings(spec, facts)]


def test_nothing_is_found_where_the_tool_used_what_it_was_given(testdata):
    assert subjects(SPEC) == []
    facts = parse_log((testdata / "policy_int8.log").read_text().splitlines())
    (name,) = facts.inputs_echo
    spec = replace(SPEC, inputs=(InputSpec(name),), compiler=CompilerKnobs("O3"))
    level = facts.compiler_options.split()[0]
    assert level.startswith("--O")
    found = find_unused_settings(replace(spec, compiler=CompilerKnobs(level[2:])), facts)
    assert found == []


def test_the_tool_has_a_name_of_its_own_for_nv12_of_video_range():
    video = replace(SPEC, inputs=(replace(IMAGE, space_and_range="bt601_video"),))
    said = {"input_type_rt": "yuv420sp_bt601_video", "input_space&range": "bt601_video"}
    assert subjects(video, **said) == []
    assert subjects(video, **{**said, "input_type_rt": "nv12"}) == ["input_type_rt of image"]
    assert subjects(SPEC, **said) == ["input_type_rt of image", "input_space&range of image"]


@pytest.mark.parametrize(
    ("echo", "subject"),
    [
        ({"input_type_rt": "rgb"}, "input_type_rt of image"),
        ({"cal_data_type": "float32"}, "cal_data_type of image"),
        ({"mean_value": "0,0,0,"}, "mean_value of image"),
        ({"scale_value": "None"}, "scale_value of image"),
        ({"norm_type": "no_preprocess"}, "norm_type of image"),
        ({"input_shape": "1x3x64x64"}, "input_shape of image"),
    ],
)
def test_an_input_that_was_read_otherwise_is_an_error(echo, subject):
    assert subjects(SPEC, **echo) == [subject]


def test_another_level_or_mode_is_an_error():
    assert subjects(SPEC, OPTIONS.replace("O1", "O0")) == ["optimize_level"]
    assert subjects(replace(SPEC, compiler=CompilerKnobs("O1", "bandwidth"))) == ["compile_mode"]


def test_an_input_of_which_nothing_is_said_is_a_warning():
    (found,) = find_unused_settings(replace(SPEC, inputs=(InputSpec("other"),)), LogFacts(inputs_echo={"image": ECHO}))
    assert (found.code, found.severity, found.subject) == ("SETTING_NOT_SHOWN", "warning", "other")


def test_a_node_that_could_not_be_removed_is_named():
    facts = LogFacts(warnings=["Node nope is not found in the model! Skipped!"], inputs_echo={"image": ECHO})
    asked = replace(SPEC, remove_node_names=("nope", "y_HzDequantize"))
    (found,) = find_unused_settings(asked, facts)
    assert (found.code, found.severity, found.subject) == ("NODE_NOT_REMOVED", "error", "nope")
    (found,) = find_unused_settings(replace(asked, remove_node_types=("Dequantize",)), facts)
    assert found.severity == "warning"
