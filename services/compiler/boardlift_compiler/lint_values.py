"""Lint the values of a makertbin YAML: what the tool would ignore, and what it would refuse; pure.

What it ignores was measured by building with and without the key: thresholds and compiler options are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boardlift_compiler.load_config import ConvertedConfig, add_error, add_warning
from boardlift_compiler.preflight import check_settings
from boardlift_compiler.spec import CompileSpec

Sections = Mapping[str, Mapping[str, Any]]
NO_SAMPLES = ("skip", "load")


def lint_ignored(result: ConvertedConfig, sections: Sections) -> None:
    """Warn (CONFIG_KEY_IGNORED) of keys without effect beside the others that are there."""
    model, calibration = sections.get("model_parameters", {}), sections.get("calibration_parameters", {})
    compiler = sections.get("compiler_parameters", {})
    method = str(calibration.get("calibration_type") or "default")
    mode = str(compiler.get("compile_mode") or "latency")
    ignored = (
        ("set_node_data_type", model.get("node_info") and model.get("set_node_data_type"), "node_info wins over it"),
        ("max_percentile", calibration.get("max_percentile") and method != "max", f"method {method} does not read it"),
        (
            "per_channel",
            calibration.get("per_channel") is True and method in ("default", "mix"),
            f"method {method} chooses by itself",
        ),
        (
            "balance_factor",
            compiler.get("balance_factor") is not None and mode != "balance",
            f"compile_mode is {mode}, not balance",
        ),
    )
    for key, found, why in ignored:
        if found:
            add_warning(result, "CONFIG_KEY_IGNORED", f"{key} has no effect: {why}.", key, "Remove it.")


def lint_settings(result: ConvertedConfig, spec: CompileSpec) -> None:
    """Add an error, with the refusal's own code, for every setting that the tool refuses whatever the model is."""
    for failure in check_settings(spec):
        add_error(result, failure.code, failure.message, failure.subject, failure.remedy)


def lint_folders(result: ConvertedConfig, calibration: Mapping[str, Any], count: int) -> None:
    """Warn when there is not one calibration folder per input; the samples may still be given beside the YAML.

    Args:
        result: Receives CALIBRATION_DIR_COUNT.
        calibration: Section ``calibration_parameters``.
        count: Number of inputs.
    """
    folders = [f for f in str(calibration.get("cal_data_dir") or "").split(";") if f.strip()]
    if calibration.get("calibration_type") not in NO_SAMPLES and len(folders) != count:
        text = f"cal_data_dir names {len(folders)} folders for {count} inputs: the tool refuses that."
        advice = "Name one folder per input, separated by ';', or give the samples with --data."
        add_warning(result, "CALIBRATION_DIR_COUNT", text, "cal_data_dir", advice)


def lint_input(result: ConvertedConfig, name: str, rt: str, index: int, columns: Mapping[str, list[str]]) -> None:
    """Lint how one input is preprocessed.

    Args:
        result: Receives CONFIG_PREPROCESS_CONTRADICTION, CONFIG_KEY_IGNORED and CONFIG_MISSING_KEY.
        name: The input, for people.
        rt: Its ``input_type_rt``.
        index: Its place.
        columns: Per key of ``input_parameters`` one value per input.
    """
    norm = columns["norm_type"][index] if index < len(columns["norm_type"]) else "no_preprocess"
    for key, word in (("mean_value", "mean"), ("scale_value", "scale")):
        values = columns[key]
        given = index < len(values) and values[index] not in ("", "None")
        if given and word not in norm:
            text = f"{key} of {name} is ignored: norm_type is {norm or 'no_preprocess'}."
            add_warning(result, "CONFIG_PREPROCESS_CONTRADICTION", text, key, f"Set norm_type: data_{word}.")
        if not given and word in norm:
            text = f"norm_type of {name} is {norm} but {key} is missing."
            add_error(result, "CONFIG_PREPROCESS_CONTRADICTION", text, key)
    layout = columns["input_layout_rt"]
    has_layout = index < len(layout) and bool(layout[index])
    if rt == "nv12" and has_layout:
        text = f"input_layout_rt of {name} is ignored for nv12."
        add_warning(result, "CONFIG_KEY_IGNORED", text, "input_layout_rt", "Leave it out.")
    if rt != "nv12" and not has_layout:
        text = f"input_parameters lacks input_layout_rt of {name}, which {rt} needs."
        add_error(result, "CONFIG_MISSING_KEY", text, "input_layout_rt", "Set NCHW or NHWC.")
