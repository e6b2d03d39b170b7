"""gflags-style command line -> typed options.

`--flag=value`, `--flag value`, one or two dashes; a repeated flag's last value wins; bare booleans are true; stray
words are ignored, unknown flags are refused (also `--model-file` with a dash, a common slip).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .errors import INVALID_ARGUMENT, BoardError

COMMANDS = ("model_info", "infer", "perf")

_TEXT = {
    "model_file": "",
    "model_name": "",
    "input_file": "",
    "roi": "",
    "profile_path": "",
    "dump_path": "",
    "dump_format": "bin",
}
_NUMBER = {
    "core_id": 0,
    "frame_count": 0,
    "perf_time": 0,
    "thread_num": 1,
    "dump_precision": 9,
    "dump_txt_axis": 4,
    "dump_intermediate": 0,
}
_BOOL = {
    "roi_infer": False,
    "enable_dump": False,
    "hybrid_dequantize_process": False,
    "enable_cls_post_process": False,
}


@dataclass(frozen=True)
class Options:
    """One parsed command line."""

    command: str
    """`model_info`, `infer` or `perf`; empty when none was given."""
    text: dict[str, str] = field(default_factory=dict)
    """Values of the text flags, defaults filled in."""
    number: dict[str, int] = field(default_factory=dict)
    """Values of the whole-number flags, defaults filled in."""
    switch: dict[str, bool] = field(default_factory=dict)
    """Values of the boolean flags, defaults filled in."""

    @property
    def model_files(self) -> list[str]:
        """The model files, split at commas."""
        return [part for part in self.text["model_file"].split(",") if part]

    @property
    def input_files(self) -> list[str]:
        """The input files, split at commas, in the model's input order."""
        return [part for part in self.text["input_file"].split(",") if part]


def read_flags(arguments: Sequence[str]) -> Options:
    """Parses the words after the program's name.

    Args:
        arguments: the command line without the program.

    Returns:
        The options with the tool's defaults filled in.

    Raises:
        BoardError: an unknown flag, a missing value or a value of the wrong type.
    """
    text, number, switch = dict(_TEXT), dict(_NUMBER), dict(_BOOL)
    command = ""
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            if not command and word in COMMANDS:
                command = word
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        if name in switch:
            if not has_value and words and words[0].lower() in ("true", "false"):
                value, has_value = words.pop(0), "="
            switch[name] = _truth(name, value) if has_value else True
            continue
        if name not in text and name not in number:
            raise BoardError(INVALID_ARGUMENT, f"unknown command line flag '{name}'")
        if not has_value:
            if not words:
                raise BoardError(INVALID_ARGUMENT, f"flag '{name}' is missing its argument")
            value = words.pop(0)
        if name in text:
            text[name] = value
        else:
            number[name] = _whole(name, value)
    return Options(command, text, number, switch)


def _truth(name: str, value: str) -> bool:
    lowered = value.lower()
    if lowered in ("true", "1", "t", "y", "yes"):
        return True
    if lowered in ("false", "0", "f", "n", "no"):
        return False
    raise BoardError(INVALID_ARGUMENT, f"illegal value '{value}' specified for bool flag '{name}'")


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise BoardError(INVALID_ARGUMENT, f"illegal value '{value}' specified for int32 flag '{name}'") from None
