"""Read an existing makertbin YAML into a typed spec without losing a key, and lint it; pure.

Paths in it (model, calibration folders) are returned, never opened: the caller uploads what they name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from boardlift_compiler.lint_values import lint_folders, lint_ignored, lint_input, lint_settings
from boardlift_compiler.load_config import KNOWN, ConvertedConfig, add_error, add_warning, load_sections
from boardlift_compiler.read_calibration_dtype import read_calibration_dtype
from boardlift_compiler.spec import (
    MARCH,
    CalibrationSpec,
    CompilerKnobs,
    CompileSpec,
    InputSpec,
    NodeOverride,
)


def read_config(text: str) -> ConvertedConfig:
    """Convert and lint; every problem is a finding, nothing raises."""
    result = ConvertedConfig()
    sections = load_sections(text, result)
    if sections is None:
        return result
    spec = _Reader(sections, result).read()
    lint_ignored(result, sections)
    lint_settings(result, spec)
    if not any(f.severity == "error" for f in result.findings):
        result.spec = spec
    return result


class _Reader:
    """Reads the sections' values."""

    def __init__(self, sections: Mapping[str, Mapping[str, Any]], result: ConvertedConfig) -> None:
        self._model = sections.get("model_parameters", {})
        self._input = sections.get("input_parameters", {})
        self._calibration = sections.get("calibration_parameters", {})
        self._compiler = sections.get("compiler_parameters", {})
        self._result = result

    def read(self) -> CompileSpec:
        """Return the spec; problems become findings."""
        model, result = self._model, self._result
        march = str(model.get("march", ""))
        if march and march != MARCH:
            add_error(result, "MARCH_INVALID", f"march {march} is another chip's.", "march", f"Use {MARCH} for RDK X5.")
        for key in ("onnx_model", "working_dir", "output_model_file_prefix"):
            if model.get(key):
                result.paths[key] = str(model[key])
        if self._calibration.get("cal_data_dir"):
            result.paths["cal_data_dir"] = str(self._calibration["cal_data_dir"])
        debug_mode = str(model.get("debug_mode") or "")
        if debug_mode not in ("", "dump_calibration_data"):
            text = f"debug_mode {debug_mode} does not exist."
            add_error(result, "CONFIG_VALUE", text, "debug_mode", "Use dump_calibration_data or leave it out.")
        dumps = self._flag(model, "layer_out_dump", False)
        if dumps:
            text = "layer_out_dump is True: every layer's output is kept, which makes the model slow on the board."
            add_warning(result, "LAYER_DUMP_SLOW", text, "layer_out_dump", "Set False for what is delivered.")
        return CompileSpec(
            name="from-yaml",
            inputs=self._inputs(),
            calibration=self._calibration_spec(),
            nodes=self._nodes(),
            compiler=self._knobs(),
            remove_node_types=_words(model.get("remove_node_type")),
            remove_node_names=_words(model.get("remove_node_name")),
            output_nodes=_words(model.get("output_nodes")),
            layer_out_dump=dumps,
            dump_calibration_data=debug_mode == "dump_calibration_data",
        )

    def _flag(self, section: Mapping[str, Any], key: str, default: bool) -> bool:
        value = section.get(key, default)
        if isinstance(value, bool):
            return value
        if value is None:
            return default
        add_error(self._result, "CONFIG_VALUE", f"{key} must be True or False, not {value!r}.", key)
        return default

    def _whole(self, section: Mapping[str, Any], key: str) -> int:
        value = section.get(key)
        if value is None or value == "":
            return 0
        if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
            add_error(self._result, "CONFIG_VALUE", f"{key} must be a whole number, not {value!r}.", key)
            return 0
        return int(value)

    def _share(self, section: Mapping[str, Any], key: str) -> float:
        value = section.get(key)
        if value is None or value == "":
            return 0.0
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            add_error(self._result, "CONFIG_VALUE", f"{key} must be a number, not {value!r}.", key)
            return 0.0
        return float(value)

    def _split(self, key: str, count: int) -> list[str]:
        text = str(self._input.get(key, "") if self._input.get(key) is not None else "").strip()
        parts = [p.strip() for p in text.rstrip(";").split(";")] if text else []
        if parts and count and len(parts) != count:
            add_error(self._result, "CONFIG_MISSING_KEY", f"{key} has {len(parts)} values for {count} inputs.", key)
        return parts

    def _inputs(self) -> tuple[InputSpec, ...]:
        names = self._split("input_name", 0)
        count = len(names) or len(self._split("input_type_train", 0)) or 1
        columns = {key: self._split(key, count) for _, key in KNOWN if _ == "input_parameters"}
        dtypes = _words(self._calibration.get("cal_data_type"))
        if dtypes and len(dtypes) != count:
            text = f"cal_data_type has {len(dtypes)} values for {count} inputs."
            add_error(self._result, "CONFIG_MISSING_KEY", text, "cal_data_type")
        folders = _words(self._calibration.get("cal_data_dir"))
        lint_folders(self._result, self._calibration, count)
        sources = self._sources(names)
        if len(sources) == count == 1 and not names:
            names = list(sources)  # the tool knows the input's name from the model, and so does who wrote this key

        def pick(key: str, index: int, default: str) -> str:
            values = columns[key]
            return values[index] if index < len(values) and values[index] else default

        inputs = []
        for index in range(count):
            name = names[index] if index < len(names) else ""
            rt = pick("input_type_rt", index, "featuremap")
            shape = pick("input_shape", index, "")
            if shape and not re.fullmatch(r"\d+(x\d+)*", shape):
                add_error(self._result, "INPUT_SHAPE_SYNTAX", f"{shape} is not like 1x3x224x224.", "input_shape")
                shape = ""
            norm = pick("norm_type", index, "no_preprocess")
            lint_input(self._result, name or f"input {index}", rt, index, columns)
            inputs.append(
                InputSpec(
                    name,
                    pick("input_type_train", index, "featuremap"),
                    rt,
                    pick("input_layout_train", index, "NCHW"),
                    pick("input_layout_rt", index, "NCHW"),
                    pick("input_space_and_range", index, "regular"),
                    norm,
                    self._numbers(pick("mean_value", index, "") if "mean" in norm else "", "mean_value"),
                    self._numbers(pick("scale_value", index, "") if "scale" in norm else "", "scale_value"),
                    tuple(int(d) for d in shape.split("x")) if shape else (),
                    sources.get(name, ""),
                    self._batch(pick("input_batch", index, "0")),
                    self._dtype(dtypes, folders, index, rt),
                )
            )
        return tuple(inputs)

    def _sources(self, names: list[str]) -> dict[str, str]:
        given = self._compiler.get("input_source")
        if given in (None, ""):
            return {}
        if not isinstance(given, Mapping):
            text = "input_source must be a mapping of input name to source."
            add_error(self._result, "CONFIG_VALUE", text, "input_source", "Write it like {'image': 'pyramid'}.")
            return {}
        for name in given:
            if names and name not in names:
                text = f"input_source names {name}, which input_name does not."
                add_error(self._result, "INPUT_NAME_UNKNOWN", text, str(name), "Use the input names of the model.")
        return {str(name): str(source) for name, source in given.items()}

    def _dtype(self, dtypes: tuple[str, ...], folders: tuple[str, ...], index: int, rt: str) -> str:
        asked = dtypes[index] if index < len(dtypes) else ""
        folder = folders[index].rstrip("/").rsplit("/", 1)[-1] if index < len(folders) else ""
        needed = self._calibration.get("calibration_type") not in ("skip", "load")
        return read_calibration_dtype(self._result, asked, folder if needed else "", rt)

    def _batch(self, text: str) -> int:
        if re.fullmatch(r"\d+", text):
            return int(text)
        add_error(self._result, "CONFIG_VALUE", f"input_batch must be a whole number, not {text!r}.", "input_batch")
        return 0

    def _numbers(self, text: str, key: str) -> tuple[float, ...]:
        if text in ("", "None"):
            return ()
        try:
            return tuple(float(v) for v in text.replace(",", " ").split())
        except ValueError:
            add_error(self._result, "CONFIG_VALUE", f"{key} {text!r} is not a list of numbers.", key)
            return ()

    def _calibration_spec(self) -> CalibrationSpec:
        section = self._calibration
        if section.get("preprocess_on") is True:
            add_error(
                self._result,
                "PREPROCESS_ON_REFUSED",
                "preprocess_on lets the tool decode pictures; boardlift gives it raw samples.",
                "preprocess_on",
                "Build the dataset with `boardlift dataset` and leave the key out.",
            )
        method = str(section.get("calibration_type") or "default")
        share, per_channel = self._share(section, "max_percentile"), self._flag(section, "per_channel", False)
        return CalibrationSpec(
            method,
            share if method == "max" else 0.0,  # the tool ignores both elsewhere
            per_channel and method not in ("default", "mix"),
            tuple(w.strip() for w in re.split(r"[,;]", str(section.get("optimization") or "")) if w.strip()),
            _words(section.get("run_on_cpu")),
            _words(section.get("run_on_bpu")),
        )

    def _knobs(self) -> CompilerKnobs:
        section = self._compiler
        cores = section.get("core_num", 1)
        if cores not in (None, 1):
            add_error(
                self._result,
                "CORE_NUM_UNSUPPORTED",
                f"core_num is {cores!r}; the chip has one core.",
                "core_num",
                "Set core_num: 1.",
            )
        mode = str(section.get("compile_mode") or "latency")
        if mode == "balance" and section.get("balance_factor") is None:
            add_error(
                self._result, "CONFIG_MISSING_KEY", "compile_mode balance needs balance_factor.", "balance_factor"
            )
        if section and not section.get("optimize_level"):
            add_warning(
                self._result,
                "LEVEL_DEFAULT",
                "optimize_level is missing: the tool takes O0, its slowest code.",
                "optimize_level",
                "Set O3 for what is delivered.",
            )
        return CompilerKnobs(
            str(section.get("optimize_level") or "O0"),
            mode,
            self._whole(section, "balance_factor") if mode == "balance" else 0,
            self._flag(section, "debug", True),
            self._whole(section, "max_time_per_fc"),
            self._whole(section, "jobs"),
            self._whole(section, "advice"),
        )

    def _nodes(self) -> tuple[NodeOverride, ...]:
        info = self._model.get("node_info") or self._model.get("set_node_data_type")
        if not info:
            return ()
        if isinstance(info, str):
            return tuple(self._short_form(info))
        if not isinstance(info, Mapping):
            add_error(self._result, "NODE_INFO_SYNTAX", "node_info is neither a mapping nor text.", "node_info")
            return ()
        return tuple(self._long_form(str(name), entry) for name, entry in info.items())

    def _short_form(self, text: str) -> list[NodeOverride]:
        found = []
        for part in filter(None, (p.strip() for p in text.split(";"))):
            name, _, dtype = part.rpartition(":")
            if not name or dtype not in ("int8", "int16"):
                add_error(self._result, "NODE_INFO_SYNTAX", f"{part} is not like Conv_0:int16.", "node_info")
                continue
            found.append(NodeOverride(name, input_type=dtype))
        return found

    def _long_form(self, name: str, entry: Any) -> NodeOverride:
        if not isinstance(entry, Mapping):
            add_error(self._result, "NODE_INFO_SYNTAX", f"node_info of {name} is no mapping.", name)
            return NodeOverride(name)
        device, types = "", {}
        for key, value in entry.items():
            if key is True or key is False:
                text = f"ON of {name} is not quoted: YAML reads it as true and the tool dies on it."
                add_error(self._result, "NODE_INFO_SYNTAX", text, name, "Write 'ON' in quotes.")
            elif key == "ON":
                device = str(value)
            elif re.fullmatch(r"InputType\d*|OutputType", str(key)):
                types[str(key)] = str(value)
            else:
                add_error(self._result, "NODE_INFO_SYNTAX", f"node_info of {name} has an unknown key {key}.", name)
        numbered = {int(k[9:]): v for k, v in types.items() if k.startswith("InputType") and k[9:]}
        return NodeOverride(name, device, types.get("InputType", ""), types.get("OutputType", ""), numbered)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(w.strip() for w in str(value or "").split(";") if w.strip())
