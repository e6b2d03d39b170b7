"""Read a frozen dataclass from the environment, once, with bounds.

Every field becomes the variable `BOARDLIFT_<FIELD>`. Supported types: str, int, float, bool, Path, timedelta (seconds)
and tuples of str (comma separated), each also `| None`. A field may carry bounds in its metadata:
`field(metadata={"min": 1, "max": 8})`.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar

from boardlift.errors import InvalidInputError

PREFIX = "BOARDLIFT_"
T = TypeVar("T")


def from_environment(cls: type[T], environment: Mapping[str, str] | None = None) -> T:
    """Build `cls` from `BOARDLIFT_*` variables; fields without a variable keep their defaults.

    Raises:
        InvalidInputError: SETTING_INVALID names the variable and what it must be; SETTING_MISSING names a variable
            that has no default.
    """
    env = os.environ if environment is None else environment
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for item in dataclasses.fields(cls):  # type: ignore[arg-type]  # cls is a dataclass by contract
        variable = PREFIX + item.name.upper()
        text = env.get(variable)
        if text is None or (text == "" and hints[item.name] is not str):
            if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
                raise InvalidInputError(
                    f"{variable} is not set.",
                    reason="SETTING_MISSING",
                    remedy=f"Set {variable}.",
                    metadata={"variable": variable},
                )
            continue
        values[item.name] = _bounded(variable, _parse(variable, text, hints[item.name]), item.metadata)
    return cls(**values)


def _parse(variable: str, text: str, hint: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, UnionType):
        hint = next(a for a in typing.get_args(hint) if a is not type(None))
    if typing.get_origin(hint) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        if hint is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.strip().lower()]
        if hint is timedelta:
            return timedelta(seconds=float(text))
        if hint is Path:
            return Path(text).expanduser().absolute()
        return hint(text)
    except (ValueError, KeyError) as error:
        kind = "seconds" if hint is timedelta else getattr(hint, "__name__", str(hint))
        raise InvalidInputError(
            f"{variable} must be of type {kind}, not {text!r}.",
            reason="SETTING_INVALID",
            remedy=f"Correct {variable}.",
            metadata={"variable": variable, "value": text},
        ) from error


def _bounded(variable: str, value: Any, bounds: Mapping[str, Any]) -> Any:
    low, high = bounds.get("min"), bounds.get("max")
    if (low is not None and value < low) or (high is not None and value > high):
        raise InvalidInputError(
            f"{variable} must lie between {low} and {high}, not {value}.",
            reason="SETTING_INVALID",
            remedy=f"Correct {variable}.",
            metadata={"variable": variable, "value": str(value)},
        )
    return value
