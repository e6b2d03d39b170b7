"""One row of the failure table: what a failure of the vendor tool is called, how it is recognised, what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class FailureKind:
    """One way to fail."""

    code: str
    """Stable code, UPPER_SNAKE."""
    cause: str
    """One sentence: what is wrong; ``{subject}`` is filled in."""
    remedy: str
    """One thing to do about it."""
    pattern: re.Pattern[str] | None = None
    """Recognises the tool's text; None for kinds that are recognised otherwise."""
    user_fault: bool = True
    """False when the machinery is at fault, so that a retry elsewhere may help."""
    cure: str = ""
    """Id of the transform pass that cures it; empty when none does."""


def row(
    code: str, pattern: str | None, cause: str, remedy: str, *, user_fault: bool = True, cure: str = ""
) -> FailureKind:
    """Make a row; the pattern's dot matches line ends too."""
    compiled = re.compile(pattern, re.S) if pattern is not None else None
    return FailureKind(code, cause, remedy, compiled, user_fault, cure)
