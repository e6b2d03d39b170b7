"""Prove that the tool used what it was given: compare what it prints before it builds with what was asked; pure."""

from __future__ import annotations

import re

from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_log import LogFacts
from boardlift_compiler.spec import CompileSpec, InputSpec

SKIPPED = re.compile(r"Node (.+) is not found in the model! Skipped!")
VIDEO_RANGE = {("nv12", "bt601_video"): "yuv420sp_bt601_video"}
"""Run-time type and range -> what the tool then calls the type."""
MODES = {"latency": "--fast", "bandwidth": "--ddr", "balance": "--balance"}
"""Compile mode -> option of the compiler that stands for it."""


def find_unused_settings(spec: CompileSpec, facts: LogFacts) -> list[Finding]:
    """Return an error (SETTING_NOT_USED) per setting that the tool read otherwise than it was asked.

    An input of which it says nothing is a warning (SETTING_NOT_SHOWN).

    Args:
        spec: The completed spec that the YAML was written from.
        facts: What the log says.
    """
    found = []
    for item in spec.inputs:
        echo = facts.inputs_echo.get(item.name, {})
        if not echo:
            text = f"The tool does not say how it read input {item.name}."
            found.append(Finding("SETTING_NOT_SHOWN", "warning", text, item.name))
        found += [_differs(f"{key} of {item.name}", asked, echo[key]) for key, asked in _expected(item, spec).items()
                  if key in echo and not _equal(asked, echo[key])]  # fmt: skip
    options = facts.compiler_options.split()
    level = f"--{spec.compiler.optimize_level}"
    if options and level not in options:
        found.append(_differs("optimize_level", level, facts.compiler_options))
    mode = MODES.get(spec.compiler.compile_mode, "")
    if options and mode and mode not in options:
        found.append(_differs("compile_mode", mode, facts.compiler_options))
    return found + _not_removed(spec, facts)


def _not_removed(spec: CompileSpec, facts: LogFacts) -> list[Finding]:
    """Say which nodes were asked to be removed by name and are not there; by type they may have gone before."""
    skipped = {m[1] for text in facts.warnings if (m := SKIPPED.match(text))}
    severity = "warning" if spec.remove_node_types else "error"
    advice = "Use a name of the compiled model, like that of an output with _HzDequantize behind it."
    text = "{0} was asked to be removed and the tool finds no such node."
    return [Finding("NODE_NOT_REMOVED", severity, text.format(n), n, advice)
            for n in spec.remove_node_names if n in skipped]  # fmt: skip


def _expected(item: InputSpec, spec: CompileSpec) -> dict[str, str]:
    expected = {
        "input_type_rt": VIDEO_RANGE.get((item.type_rt, item.space_and_range), item.type_rt),
        "input_type_train": item.type_train,
        "input_layout_train": item.layout_train,
        "input_space&range": item.space_and_range,
        "norm_type": item.norm_type,
    }
    if item.type_rt != "nv12":
        expected["input_layout_rt"] = item.layout_rt
    if item.shape:
        expected["input_shape"] = "x".join(str(d) for d in item.shape)
    if item.mean:
        expected["mean_value"] = ",".join(repr(v) for v in item.mean)
    if item.scale:
        expected["scale_value"] = ",".join(repr(v) for v in item.scale)
    if spec.calibration.method not in ("skip", "load"):
        expected["cal_data_type"] = item.written_dtype
    return expected


def _equal(asked: str, used: str) -> bool:
    if asked == used:
        return True
    try:
        return [float(v) for v in asked.split(",")] == [float(v) for v in used.strip(" ,").split(",")]
    except ValueError:
        return False


def _differs(what: str, asked: str, used: str) -> Finding:
    text = f"{what} was given as {asked} and the tool says {used[:120]}."
    return Finding("SETTING_NOT_USED", "error", text, what, "Keep the log and report it.")
