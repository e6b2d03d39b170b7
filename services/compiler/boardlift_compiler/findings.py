"""Things worth knowing that do not stop a stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One finding."""

    code: str
    """Stable code, UPPER_SNAKE."""
    severity: str
    """``note``, ``warning`` or ``error``; an error fails the variant's gate by default."""
    message: str
    """One sentence."""
    subject: str = ""
    """Node, tensor, file or parameter."""
    remedy: str = ""
    """One thing to do about it."""
