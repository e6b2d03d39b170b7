"""Load a makertbin YAML as plain sections and lint its keys; pure. Every problem is a finding, nothing raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from boardlift_compiler.findings import Finding
from boardlift_compiler.spec import KNOBS, CompileSpec

KNOWN = {(k.section, k.key) for k in KNOBS}
SECTIONS = tuple(dict.fromkeys(k.section for k in KNOBS))
REQUIRED = (
    ("model_parameters", "onnx_model"),
    ("model_parameters", "march"),
    ("input_parameters", "input_type_train"),
    ("input_parameters", "input_layout_train"),
    ("input_parameters", "input_type_rt"),
)
IGNORED = {"log_level": "the tool ignores it", "set_node_data_type": "deprecated: use node_info"}
MAX_TEXT = 1 << 20
MAX_ANCHORS = 50


@dataclass
class ConvertedConfig:
    """A read YAML."""

    spec: CompileSpec | None = None
    """The same build as a typed spec; None when a finding is an error."""
    findings: list[Finding] = field(default_factory=list)
    """What the lint found."""
    paths: dict[str, str] = field(default_factory=dict)
    """Paths the YAML names: ``onnx_model``, ``cal_data_dir``, ``working_dir`` and the prefix."""


class _PlainLoader(yaml.SafeLoader):
    """Loads plain data; a key written twice is an error instead of a silent overwrite."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping; refuses repeated keys."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (dict, list)) or key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is repeated", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def add_error(result: ConvertedConfig, code: str, message: str, subject: str = "", remedy: str = "") -> None:
    """Add a finding that stands against the conversion."""
    result.findings.append(Finding(code, "error", message, subject, remedy))


def add_warning(result: ConvertedConfig, code: str, message: str, subject: str = "", remedy: str = "") -> None:
    """Add a finding that does not stop the conversion."""
    result.findings.append(Finding(code, "warning", message, subject, remedy))


def _sections(data: Mapping[Any, Any], result: ConvertedConfig) -> dict[str, dict[str, Any]]:
    sections: dict[str, dict[str, Any]] = {}
    for name, entries in data.items():
        if name not in SECTIONS:
            add_error(result, "CONFIG_UNKNOWN_KEY", f"Unknown section {name}.", str(name), "Remove it.")
        elif not isinstance(entries, Mapping):
            if entries is not None:
                add_error(result, "CONFIG_SECTION_INVALID", f"Section {name} holds no keys.", str(name))
        else:
            sections[str(name)] = {str(k): v for k, v in entries.items()}
    if "compiler_parameters" not in sections:
        add_warning(
            result,
            "CONFIG_SECTION_MISSING",
            "There is no compiler_parameters section: the tool takes level O0, its slowest code.",
            "compiler_parameters",
            "Set optimize_level: O3.",
        )
    return sections


def _lint_keys(sections: Mapping[str, Mapping[str, Any]], result: ConvertedConfig) -> None:
    for section, entries in sections.items():
        for key in entries:
            if (section, key) not in KNOWN:
                home = next((s for s, k in KNOWN if k == key), "")
                hint = f"It belongs into {home}." if home else "Remove it."
                add_error(result, "CONFIG_UNKNOWN_KEY", f"{section} has no key {key}.", key, hint)
            elif key in IGNORED:
                add_warning(result, "CONFIG_KEY_IGNORED", f"{key}: {IGNORED[key]}.", key, "Remove it.")
    for section, key in REQUIRED:
        if sections.get(section, {}).get(key) in (None, ""):
            if key == "onnx_model" and sections.get(section, {}).get("caffe_model"):
                add_error(result, "CAFFE_UNSUPPORTED", "Caffe models are not served.", "caffe_model", "Export to ONNX.")
            else:
                add_error(result, "CONFIG_MISSING_KEY", f"{section} lacks {key}.", key)
    if any(sections.get("custom_op", {}).values()):
        add_error(
            result,
            "CUSTOM_OP_REFUSED",
            "custom_op would run Python of the YAML's author inside the service.",
            "custom_op",
            "Replace the custom operators before the compile.",
        )


def load_sections(text: str, result: ConvertedConfig) -> dict[str, dict[str, Any]] | None:
    """Parse the text and lint its sections and keys.

    Returns:
        Section -> key -> value, or None when the text is no YAML of sections (a finding says why).
    """
    if len(text) > MAX_TEXT or text.count("&") > MAX_ANCHORS:
        add_error(result, "CONFIG_SYNTAX", "The YAML is too large or has too many anchors.")
        return None
    try:
        data = yaml.load(text, Loader=_PlainLoader)  # noqa: S506  # a SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        add_error(result, "CONFIG_SYNTAX", f"The YAML is not well formed: {problem}.", where)
        return None
    if not isinstance(data, Mapping):
        add_error(result, "CONFIG_SYNTAX", "The YAML holds no sections.")
        return None
    sections = _sections(data, result)
    _lint_keys(sections, result)
    return sections
