"""Write the YAML for ``hb_mapper makertbin`` from a typed spec; pure and byte-stable.

Only names of ours appear as paths. Text is always quoted (JSON strings are YAML strings), so that a node named ``ON``
or ``1e3`` stays a name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from boardlift_compiler.spec import MARCH, CompileSpec, InputSpec, NodeOverride

PREFIX = "model"
MODEL_FILE = "model.onnx"
OUTPUT_FOLDER = "out"
CONFIG_FILE = "config.yaml"

Value = str | int | float | bool | Mapping[str, object]


def calibration_folder(index: int, spec: InputSpec) -> str:
    """Return the folder name of an input's samples; its suffix agrees with the element type."""
    return f"calibration{index}_{'f32' if spec.written_dtype == 'float32' else spec.written_dtype}"


def build_config(spec: CompileSpec) -> dict[str, dict[str, Value]]:
    """Return the YAML's sections for a completed spec (see ``apply_preset.complete_spec``)."""
    return {
        "model_parameters": _model_section(spec),
        "input_parameters": _input_section(spec),
        "calibration_parameters": _calibration_section(spec),
        "compiler_parameters": _compiler_section(spec),
    }


def write_config(spec: CompileSpec) -> str:
    """Return the YAML text for a completed spec."""
    lines = ["# written by boardlift"]
    for section, entries in build_config(spec).items():
        lines.append(f"{section}:")
        lines += [f"  {key}: {_scalar(value)}" for key, value in entries.items()]
    return "\n".join(lines) + "\n"


def _scalar(value: Value) -> str:
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _model_section(spec: CompileSpec) -> dict[str, Value]:
    section: dict[str, Value] = {
        "onnx_model": MODEL_FILE,
        "march": MARCH,
        "output_model_file_prefix": PREFIX,
        "working_dir": OUTPUT_FOLDER,
        "layer_out_dump": spec.layer_out_dump,
    }
    if spec.nodes:
        section["node_info"] = {o.node: _node_info(o) for o in spec.nodes}
    for key, names in (
        ("output_nodes", spec.output_nodes),
        ("remove_node_type", spec.remove_node_types),
        ("remove_node_name", spec.remove_node_names),
    ):
        if names:
            section[key] = ";".join(names)
    if spec.dump_calibration_data:
        section["debug_mode"] = "dump_calibration_data"
    return section


def _node_info(override: NodeOverride) -> dict[str, str]:
    info: dict[str, str] = {}
    if override.device:
        info["ON"] = override.device
    if override.input_type:
        info["InputType"] = override.input_type
    for number, dtype in sorted(override.input_types.items()):
        info[f"InputType{number}"] = dtype
    if override.output_type:
        info["OutputType"] = override.output_type
    return info


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(_number(v) for v in values) if values else "None"


def _number(value: float) -> str:
    """Write the shortest text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(str(d) for d in shape)


def _input_section(spec: CompileSpec) -> dict[str, Value]:
    inputs = spec.inputs

    def each(values: list[str]) -> str:
        return ";".join(values)

    section: dict[str, Value] = {
        "input_name": each([i.name for i in inputs]),
        "input_type_train": each([i.type_train for i in inputs]),
        "input_layout_train": each([i.layout_train for i in inputs]),
        "input_type_rt": each([i.type_rt for i in inputs]),
        "norm_type": each([i.norm_type for i in inputs]),
    }
    if any(i.type_rt != "nv12" for i in inputs):
        section["input_layout_rt"] = each([i.layout_rt if i.type_rt != "nv12" else "NHWC" for i in inputs])
    if any(i.space_and_range != "regular" for i in inputs):
        section["input_space_and_range"] = each([i.space_and_range for i in inputs])
    if all(i.shape for i in inputs):
        section["input_shape"] = each([_shape(i.shape) for i in inputs])
    if any(i.batch for i in inputs):
        section["input_batch"] = each([str(i.batch or 1) for i in inputs])
    if any(i.mean for i in inputs):
        section["mean_value"] = each([_numbers(i.mean) for i in inputs])
    if any(i.scale for i in inputs):
        section["scale_value"] = each([_numbers(i.scale) for i in inputs])
    return section


def _calibration_section(spec: CompileSpec) -> dict[str, Value]:
    knobs = spec.calibration
    section: dict[str, Value] = {"calibration_type": knobs.method, "preprocess_on": False}
    if knobs.method not in ("skip", "load"):
        section["cal_data_dir"] = ";".join(calibration_folder(n, i) for n, i in enumerate(spec.inputs))
        section["cal_data_type"] = ";".join(i.written_dtype for i in spec.inputs)
    if knobs.max_percentile:
        section["max_percentile"] = knobs.max_percentile
    if knobs.per_channel:
        section["per_channel"] = True
    if knobs.optimization:
        section["optimization"] = ";".join(knobs.optimization)
    if knobs.run_on_cpu:
        section["run_on_cpu"] = ";".join(knobs.run_on_cpu)
    if knobs.run_on_bpu:
        section["run_on_bpu"] = ";".join(knobs.run_on_bpu)
    return section


def _compiler_section(spec: CompileSpec) -> dict[str, Value]:
    knobs = spec.compiler
    section: dict[str, Value] = {
        "compile_mode": knobs.compile_mode,
        "optimize_level": knobs.optimize_level or "O3",
        "core_num": 1,
        "debug": knobs.debug,
    }
    if knobs.compile_mode == "balance":
        section["balance_factor"] = knobs.balance_factor
    if knobs.jobs:
        section["jobs"] = knobs.jobs
    if knobs.max_time_per_fc_us:
        section["max_time_per_fc"] = knobs.max_time_per_fc_us
    if knobs.advice_us:
        section["advice"] = knobs.advice_us
    sources = {i.name: i.source for i in spec.inputs if i.source}
    if sources:
        section["input_source"] = sources
    return section
