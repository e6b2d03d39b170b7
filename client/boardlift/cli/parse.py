"""Texts of the command line -> values of the SDK. Pure; every refusal says how to write it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boardlift._requests import parse_variant
from boardlift.errors import InvalidInputError
from boardlift.models import InputFormat, Variant

_TEXT_KEYS = ("type_train", "type_rt", "layout_train", "layout_rt", "norm_type", "space_and_range", "source")
_INPUT_KEYS = (*_TEXT_KEYS, "mean", "scale", "shape")
_NEXT_NUMBER = re.compile(r",(?=\s*[-+.\d][^=,]*(?:,|$))")
_SECRET_OPTIONS = ("--token",)


def parse_shapes(items: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Parse `obs=1x225` texts.

    Raises:
        InvalidInputError: One is something else (`SHAPE_INVALID`).
    """
    shapes = {}
    for item in items:
        name, separator, text = item.rpartition("=")
        try:
            shape = tuple(int(part) for part in text.replace(",", "x").split("x"))
        except ValueError:
            shape = ()
        if not separator or not name or not shape or min(shape) < 1:
            raise InvalidInputError(
                f"{item!r} is not a shape.",
                reason="SHAPE_INVALID",
                remedy="Write NAME=1x225, all sizes positive.",
                metadata={"input": name or item},
            )
        shapes[name] = shape
    return shapes


def parse_freeze(items: Iterable[str]) -> dict[str, Any]:
    """Parse `sr=16000` texts; the value is JSON: a number, true, false or lists of them.

    Raises:
        InvalidInputError: One is something else (`FREEZE_INVALID`).
    """
    values = {}
    for item in items:
        name, separator, text = item.partition("=")
        try:
            value = json.loads(text, parse_constant=_no_number) if name and separator else None
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, bool | int | float | list):
            raise InvalidInputError(
                f"{item!r} is not a value for an input.",
                reason="FREEZE_INVALID",
                remedy="Write NAME=16000 or NAME=[[0.1,0.2]].",
                metadata={"input": name or item},
            )
        values[name] = value
    return values


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no finite number")


def parse_input_format(text: str) -> InputFormat:
    """Parse `NAME:key=value,...`; keys are the fields of `InputFormat`, numbers of a list are split at `,` or `;`.

    Raises:
        InvalidInputError: The text is something else (`INPUT_FORMAT_INVALID`).
    """
    name, _, rest = text.rpartition(":")
    rest = _NEXT_NUMBER.sub(";", rest)  # a shell would end the command at `;`, so `mean=1,2,3` is a list as well
    parts = [part.partition("=") for part in rest.split(",") if part]
    values = {key.replace("-", "_"): value for key, _, value in parts}
    problem = next((f"{key!r} is none of {', '.join(_INPUT_KEYS)}" for key in values if key not in _INPUT_KEYS), "")
    problem = problem or next((f"{key} has no value" for key, _, value in parts if not value), "")
    try:
        numbers = {key: tuple(float(v) for v in values[key].split(";")) for key in ("mean", "scale") if key in values}
        shape = tuple(int(v) for v in values["shape"].split("x")) if "shape" in values else ()
    except ValueError:
        problem = "mean, scale or shape has something else than numbers"
    if not name or problem:
        raise InvalidInputError(
            f"{text!r} is not an input's form: {problem or 'it names no input'}.",
            reason="INPUT_FORMAT_INVALID",
            remedy="Write NAME:type_train=rgb,type_rt=nv12,layout_train=NCHW,mean=0,0,0,scale=0.004,0.004,0.004.",
            metadata={"input": name or text},
        )
    format_ = InputFormat(name, shape=shape, mean=numbers.get("mean", ()), scale=numbers.get("scale", ()))
    texts: dict[str, Any] = {key: values[key] for key in _TEXT_KEYS if key in values}
    return replace(format_, **texts)


def build_variants(
    texts: Sequence[str],
    inputs: Sequence[str],
    *,
    calibration: str = "",
    percentile: float = 0.0,
    per_channel: bool = False,
    level: str = "",
    purpose: str = "",
) -> list[Variant]:
    """Parse variants; what a variant does not say itself it takes from the job-wide options."""
    formats = tuple(parse_input_format(text) for text in inputs)
    parsed = (parse_variant(text) for text in texts)
    return [
        replace(
            variant,
            calibration=variant.calibration or calibration,
            percentile=variant.percentile or percentile,
            per_channel=variant.per_channel or per_channel,
            level=variant.level or level,
            purpose=variant.purpose or purpose,
            inputs=formats,
        )
        for variant in parsed
    ]


def split_names(items: Iterable[str]) -> tuple[str, ...]:
    """Return names given one by one or separated by commas."""
    return tuple(name for item in items for name in item.split(",") if name)


def clean_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a command line without secrets, fit to be stored with a job."""
    kept = ["boardlift"]
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in _SECRET_OPTIONS:
            skip = True
        elif not argument.startswith(tuple(f"{option}=" for option in _SECRET_OPTIONS)):
            kept.append(argument)
    return tuple(kept)


def data_path(text: str) -> Path:
    """Return the path of a dataset file.

    Raises:
        InvalidInputError: It is not an `.npz` (`DATASET_INVALID`), there is no such file (`FILE_UNREADABLE`), or it has
            another content (`DATASET_UNREADABLE`).
    """
    from boardlift.datasets import check_dataset_file

    path = Path(text)
    if path.suffix != ".npz":
        raise InvalidInputError(
            f"{path.name} is not a dataset.",
            reason="DATASET_INVALID",
            remedy="Make one first: boardlift dataset steps LOG.jsonl --out data.npz (or arrays, images).",
            metadata={"file": str(path)},
        )
    if not path.is_file():
        raise InvalidInputError(
            f"{path} is not there.",
            reason="FILE_UNREADABLE",
            remedy="Name an existing .npz, or make one: boardlift dataset steps LOG.jsonl --out data.npz.",
            metadata={"file": str(path)},
        )
    check_dataset_file(path)  # the server would know it by its digest only
    return path
