from dataclasses import replace

import pytest
import yaml

from boardlift_compiler.apply_preset import complete_spec
from boardlift_compiler.read_config import read_config
from boardlift_compiler.read_model import read_model
from boardlift_compiler.spec import KNOBS, CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec, NodeOverride
from boardlift_compiler.write_config import write_config

FULL = CompileSpec(
    name="from-yaml",
    inputs=(
        InputSpec("image", "rgb", "nv12", norm_type="data_mean_and_scale", mean=(1.5, 2.0, 3.0), scale=(0.01, 0.02,
            1 / (255 * 0.229)),
                  space_and_range="bt601_video", shape=(1, 3, 32, 48), source="pyramid", calibration_dtype="float32"),
        InputSpec("state", layout_rt="NHWC", shape=(1, 8, 1, 1), source="ddr", calibration_dtype="float32"),
    ),
    calibration=CalibrationSpec("max", 0.9999, True, ("set_all_nodes_int16", "asymmetric"), ("a", "b"), ("c",)),
    nodes=(NodeOverride("ON", "BPU", "int16", "int16"), NodeOverride("/x/Conv", "CPU"),
           NodeOverride("z", input_types={0: "int16", 2: "int8"})),
    compiler=CompilerKnobs("O2", "balance", 30, False, 5000, 3, 40),
    remove_node_types=("Quantize", "Dequantize"),
    remove_node_names=("y_HzDequantize",),
    output_nodes=("c2",),
    layer_out_dump=True,
    dump_calibration_data=True,
)  # fmt: skip
GOOD = write_config(FULL)


def codes(text):
    return [f.code for f in read_config(text).findings]


def test_every_knob_survives_the_way_out_and_back():
    back = read_config(GOOD).spec
    first, second = back.inputs
    assert replace(first, layout_rt="NCHW") == FULL.inputs[0]
    assert second == FULL.inputs[1]
    assert sorted(back.nodes, key=lambda n: n.node) == sorted(FULL.nodes, key=lambda n: n.node)
    assert replace(back, inputs=FULL.inputs, nodes=FULL.nodes) == FULL


def test_every_key_of_the_vendor_is_written_or_says_why_not():
    written = {(s, k) for s, keys in yaml.safe_load(GOOD).items() for k in keys}
    for knob in KNOBS:
        if knob.field and knob.key not in ("set_node_data_type", "input_batch"):
            assert (knob.section, knob.key) in written, knob.key
        assert knob.field or knob.why


def test_names_that_yaml_would_turn_into_something_else_stay_names():
    data = yaml.safe_load(GOOD)
    assert data["model_parameters"]["node_info"]["ON"] == {"ON": "BPU", "InputType": "int16", "OutputType": "int16"}


def test_no_path_of_anybody_is_written(models):
    summary = read_model(models.policy().SerializeToString())
    data = yaml.safe_load(write_config(complete_spec(CompileSpec(preset="int16"), summary, 2)))
    assert data["model_parameters"]["onnx_model"] == "model.onnx"
    assert data["calibration_parameters"]["cal_data_dir"] == "calibration0_f32"
    assert data["calibration_parameters"]["optimization"] == "set_all_nodes_int16"
    assert data["compiler_parameters"] == {"compile_mode": "latency", "optimize_level": "O3", "core_num": 1,
                                           "debug": True, "jobs": 2}  # fmt: skip


@pytest.mark.parametrize(("purpose", "level", "method"), [("release", "O3", "default"), ("search", "O2", "max"),
                                                          ("preview", "O1", "max")])  # fmt: skip
def test_the_purpose_chooses_what_is_left_open(models, purpose, level, method):
    summary = read_model(models.policy().SerializeToString())
    spec = complete_spec(CompileSpec(purpose=purpose), summary, 1)
    assert (spec.compiler.optimize_level, spec.calibration.method) == (level, method)
    asked = CompileSpec(purpose=purpose, calibration=CalibrationSpec("kl"), compiler=CompilerKnobs("O0"))
    spec = complete_spec(asked, summary, 1)
    assert (spec.compiler.optimize_level, spec.calibration.method) == ("O0", "kl")


def test_presets(models):
    policy, camera = (read_model(m.SerializeToString()) for m in (models.policy(), models.camera()))
    assert complete_spec(CompileSpec(preset="auto"), policy, 1).wants_int16
    assert not complete_spec(CompileSpec(preset="auto"), camera, 1).wants_int16
    mixed = complete_spec(CompileSpec(preset="mixed"), policy, 1)
    assert [(n.node, n.input_type) for n in mixed.nodes] == [("fc0", "int16"), ("fc2", "int16")]
    fast = complete_spec(CompileSpec(preset="fast-perf"), read_model(models.two_islands().SerializeToString()), 1)
    assert fast.remove_node_types == ("Dequantize",)
    assert "set_Softmax_input_int8" in fast.calibration.optimization


LINTS = [
    ("march", '"bayes-e"', '"bayes"', "MARCH_INVALID"),
    ("core_num", "core_num: 1", "core_num: 2", "CORE_NUM_UNSUPPORTED"),
    ("no level", '  optimize_level: "O2"\n', "", "LEVEL_DEFAULT"),
    ("unquoted ON", '"ON": "BPU", "Out', 'ON: "BPU", "Out', ""),
    ("unknown key", "  march:", "  no_such: 1\n  march:", "CONFIG_UNKNOWN_KEY"),
    ("key in the wrong section", "  core_num: 1", "  core_num: 1\n  march: x", "CONFIG_UNKNOWN_KEY"),
    ("missing", '  input_type_rt: "nv12;featuremap"\n', "", "CONFIG_MISSING_KEY"),
    ("one value for two inputs", '"nv12;featuremap"', '"nv12"', "CONFIG_MISSING_KEY"),
    ("shape with commas", "1x3x32x48", "1,3,32,48", "INPUT_SHAPE_SYNTAX"),
    ("scale without norm", "data_mean_and_scale", "data_mean", "CONFIG_PREPROCESS_CONTRADICTION"),
    ("suffix", "calibration0_f32", "calibration0_uint8", "CALIBRATION_SUFFIX_CONTRADICTS"),
    ("bool as text", "per_channel: True", 'per_channel: "maybe"', "CONFIG_VALUE"),
    ("percentile as text", "max_percentile: 0.9999", "max_percentile: most", "CONFIG_VALUE"),
    ("percentile as bool", "max_percentile: 0.9999", "max_percentile: True", "CONFIG_VALUE"),
    ("batch as text", "  norm_type:", '  input_batch: "4;many"\n  norm_type:', "CONFIG_VALUE"),
    ("negative batch", "  norm_type:", '  input_batch: "-4;1"\n  norm_type:', "CONFIG_VALUE"),
    ("one type for two inputs", '"float32;float32"', '"uint8"', "CONFIG_MISSING_KEY"),
    ("jobs as text", "jobs: 3", "jobs: many", "CONFIG_VALUE"),
    ("log_level", "  march:", "  log_level: debug\n  march:", "CONFIG_KEY_IGNORED"),
    ("layer dump", "", "", "LAYER_DUMP_SLOW"),
    ("balance", "  balance_factor: 30\n", "", "CONFIG_MISSING_KEY"),
    ("syntax", "input_parameters:", "input_parameters: [", "CONFIG_SYNTAX"),
    ("repeated key", "  core_num: 1", "  core_num: 1\n  core_num: 1", "CONFIG_SYNTAX"),
]


@pytest.mark.parametrize(("name", "old", "new", "expected"), LINTS, ids=[row[0] for row in LINTS])
def test_lint(name, old, new, expected):
    assert old in GOOD or not expected
    assert not expected or expected in codes(GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("folders", "dtypes", "code"),
    [
        ("a_uint8;b_f32", ("uint8", "float32"), "CALIBRATION_TYPE_DEFAULT"),
        ("a;b_f32", ("uint8", "float32"), "CALIBRATION_TYPE_DEFAULT"),
        ("a_f32;b_f32/", ("float32", "float32"), ""),
        ("a_f32;b_float32", None, "CALIBRATION_TYPE"),
        ("a_f32;b_int8", None, "CALIBRATION_TYPE"),
        ("a_f32;b", None, "CALIBRATION_TYPE"),
    ],
)
def test_without_cal_data_type_the_tools_own_choice_is_said_or_refused(folders, dtypes, code):
    """Measured on the tool: float32 after ``_f32``, uint8 after everything else; a featuremap refuses uint8."""
    text = GOOD.replace("calibration0_f32;calibration1_f32", folders)
    text = text.replace('  cal_data_type: "float32;float32"\n', "")
    text = text.replace("bt601_video", "regular")  # the tool fails on uint8 samples of the other
    converted = read_config(text)
    assert [f.code for f in converted.findings if f.code.startswith("CALIBRATION")] == ([code] if code else [])
    assert (tuple(i.calibration_dtype for i in converted.spec.inputs) if converted.spec else None) == dtypes


def test_an_unquoted_on_is_found_where_the_tool_only_dies():
    text = GOOD.replace("node_info: {", 'node_info: {"op": {ON: "BPU"}, ')
    converted = read_config(text)
    assert "NODE_INFO_SYNTAX" in [f.code for f in converted.findings]
    assert converted.spec is None


def test_short_form_of_node_info_and_ignored_custom_op():
    text = GOOD.split("  node_info:")[0] + '  node_info: "fc0:int16;fc1:int16"\n'
    text += "input_parameters:" + GOOD.split("input_parameters:")[1]
    assert [n.node for n in read_config(text).spec.nodes] == ["fc0", "fc1"]
    assert "CUSTOM_OP_REFUSED" in codes(GOOD + "custom_op:\n  op_register_files: evil.py\n")


@pytest.mark.parametrize(
    "text", ["", "- 1", "a: &a [*a]", "x: !!python/object/apply:os.system ['id']", "\x00", "{" * 3000]
)
def test_hostile_text_is_a_finding(text):
    assert codes(text)[0] in ("CONFIG_SYNTAX", "CONFIG_UNKNOWN_KEY")


def test_without_a_compiler_section_the_lint_says_what_the_tool_takes():
    text = GOOD.split("compiler_parameters:")[0]
    assert "CONFIG_SECTION_MISSING" in codes(text)
    assert read_config(text).spec.compiler.optimize_level == "O0"


def test_paths_are_returned_and_never_opened():
    assert read_config(GOOD).paths["cal_data_dir"] == "calibration0_f32;calibration1_f32"
