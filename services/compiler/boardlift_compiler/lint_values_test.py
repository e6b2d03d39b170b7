import re

import pytest
import yaml

from boardlift_compiler.read_config import read_config
from boardlift_compiler.write_config import build_config

YAML = """model_parameters:
  onnx_model: m.onnx
  march: bayes-e
input_parameters:
  input_type_train: rgb
  input_layout_train: NCHW
  input_type_rt: nv12
  norm_type: data_mean_and_scale
  mean_value: 123.675 116.28 103.53
  scale_value: 0.01712475383 0.0175070028 0.0174291938
calibration_parameters:
  cal_data_dir: ./cal_uint8
  cal_data_type: uint8
  calibration_type: max
compiler_parameters:
  compile_mode: latency
  optimize_level: O3
"""
MODEL, METHOD, LEVEL, NORM = "march: bayes-e", "calibration_type: max", "optimize_level: O3", "  norm_type:"


def lint(*changes):
    text = YAML
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    result = read_config(text)
    return result.spec, {(f.code, f.severity) for f in result.findings}


def after(line, more):
    return line, f"{line}\n  {more}"


def test_nothing_is_found_in_a_good_one_and_every_digit_stays():
    spec, found = lint()
    assert not found
    assert spec.inputs[0].scale == (0.01712475383, 0.0175070028, 0.0174291938)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("O3", "O4"), "OPTIMIZE_LEVEL_INVALID"),
        (("latency", "fastest"), "COMPILE_MODE_INVALID"),
        ((METHOD, "calibration_type: best"), "CALIBRATION_METHOD_INVALID"),
        (after(METHOD, "optimization: set_everything"), "OPTIMIZATION_INVALID"),
        (after(METHOD, "max_percentile: 1.5"), "KNOB_RANGE"),
        (after(LEVEL, "max_time_per_fc: 10"), "KNOB_RANGE"),
        (after(LEVEL, "input_source: {images: camera}"), "KNOB_RANGE"),
        (after(LEVEL, "input_source: pyramid"), "CONFIG_VALUE"),
        (after(MODEL, "debug_mode: dump_all"), "CONFIG_VALUE"),
        (after(MODEL, 'remove_node_type: "Quantize, Dequantize"'), "KNOB_RANGE"),
        (after(MODEL, 'node_info: {a: {"ON": GPU}}'), "KNOB_RANGE"),
        (("NCHW", "nchw"), "KNOB_RANGE"),
        (("nv12", "rgb"), "CONFIG_MISSING_KEY"),
        (("data_mean_and_scale", "data_std"), "NORM_TYPE_INVALID"),
        (("123.675 116.28 103.53", "123.675 116.28"), "NORM_TYPE_INVALID"),
        (("type_train: rgb", "type_train: featuremap"), "INPUT_TYPE_PAIR"),
        ((NORM, "  input_space_and_range: bt709\n  norm_type:"), "KNOB_RANGE"),
        ((NORM, "  input_batch: 9000\n  norm_type:"), "KNOB_RANGE"),
        ((MODEL, MODEL.replace("bayes-e", "bayes")), "MARCH_INVALID"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[1][-30:],
)
def test_what_the_tool_would_refuse_is_no_usable_yaml(change, code):
    spec, found = lint(change)
    assert spec is None
    assert (code, "error") in found


@pytest.mark.parametrize(
    "change",
    [
        after(METHOD.replace("max", "kl"), "max_percentile: 0.99"),
        after(METHOD.replace("max", "default"), "per_channel: True"),
        after(METHOD.replace("max", "mix"), "per_channel: True"),
        after(LEVEL, "balance_factor: 40"),
        after(MODEL, 'node_info: "a:int16"\n  set_node_data_type: "b:int16"'),
    ],
    ids=lambda change: change[1][-24:],
)
def test_a_key_without_effect_is_said_and_left_out(change):
    """The tool builds the same with and without it."""
    old, new = change
    known = METHOD if old.startswith("calibration_type") else old
    spec, found = lint((known, new))
    without, _ = lint((known, new.rpartition("\n")[0]))
    assert ("CONFIG_KEY_IGNORED", "warning") in found
    assert spec == without


def test_a_mean_that_norm_type_leaves_out_is_ignored_as_the_tool_does():
    spec, found = lint(("data_mean_and_scale", "data_scale"))
    assert ("CONFIG_PREPROCESS_CONTRADICTION", "warning") in found
    assert spec.inputs[0].mean == ()
    assert spec.inputs[0].scale


def test_the_source_of_an_input_that_only_the_source_names_is_kept():
    spec, _ = lint(after(LEVEL, "input_source: {images: resizer}"))
    assert [(i.name, i.source) for i in spec.inputs] == [("images", "resizer")]
    spec, found = lint(after(LEVEL, "input_source: {images: resizer}"), (NORM, "  input_name: image\n  norm_type:"))
    assert spec is None
    assert ("INPUT_NAME_UNKNOWN", "error") in found


def test_samples_may_come_from_elsewhere_than_the_yaml():
    spec, found = lint(("  cal_data_dir: ./cal_uint8\n", ""))
    assert spec is not None
    assert ("CALIBRATION_DIR_COUNT", "warning") in found


def dumped_yaml(log):
    """Return the YAML that the tool echoes under `Dump config:`."""
    lines = log.read_text(errors="replace").splitlines()
    start = next(k for k, line in enumerate(lines) if line.endswith("Dump config:")) + 1
    end = next(k for k in range(start + 1, len(lines)) if lines[k][:4].isdigit())
    return "\n".join([re.sub(r"^.*line No: \d+ ", "", lines[start]), *lines[start + 1 : end]])


def plain(value):
    """Numbers and names alike as words; `;` behind the last value means nothing."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    words = re.split(r"[;,\s]+", str(value).strip("; "))
    return [float(w) if re.fullmatch(r"[\d.]+(e-\d+)?", w) else w for w in words]


OURS = ("onnx_model", "cal_data_dir", "working_dir", "output_model_file_prefix")


@pytest.mark.shared
@pytest.mark.parametrize("number", range(2, 12))
def test_the_yaml_of_other_peoples_builds_comes_through_without_losing_a_key(shared_logs, number):
    (log,) = shared_logs.glob(f"{number:02d}_makertbin*.log")
    text = dumped_yaml(log)
    converted = read_config(text)
    assert not [f for f in converted.findings if f.severity == "error"]
    written = build_config(converted.spec)
    for section, keys in yaml.safe_load(text).items():
        for key, value in keys.items():
            if key in OURS:
                assert converted.paths[key] == str(value)
            elif value not in (False, None, "regular") or key in written[section]:
                assert plain(written[section][key]) == plain(value), key
