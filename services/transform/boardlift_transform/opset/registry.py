"""Register one adapter per operator and step, found by (operator, version it steps down from)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boardlift_transform.opset.step import Step

Adapter = Callable[["Step"], None]
"""Rewrites the node of a step into nodes whose operator versions are all lower."""

_ADAPTERS: dict[tuple[str, int], Adapter] = {}


def adapter(op: str, *versions: int) -> Callable[[Adapter], Adapter]:
    """Mark a function as the step below `versions` of `op`.

    Args:
        op: Operator of ai.onnx.
        versions: The versions (``since_version``) that the function steps down from.

    Returns:
        The decorator.
    """

    def mark(function: Adapter) -> Adapter:
        for version in versions:
            if (op, version) in _ADAPTERS:
                raise ValueError(f"two adapters for {op}-{version}")
            _ADAPTERS[(op, version)] = function
        return function

    return mark


@lru_cache(maxsize=1)
def adapters() -> dict[tuple[str, int], Adapter]:
    """All adapters, after importing every family file beside this one."""
    from boardlift_transform.opset import families

    for info in pkgutil.iter_modules(families.__path__):
        if not info.name.endswith("_test"):
            importlib.import_module(f"{families.__name__}.{info.name}")
    return _ADAPTERS
