"""Numbers, bytes, failures and findings, and how they become JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One number with its unit and its kind."""

    name: str
    """Stable name, for example "estimated_latency_us"."""
    value: float
    """The number."""
    unit: str = "1"
    """"us", "ms", "bytes", "fps", "1" for ratios."""
    kind: str = ""
    """"measured" on the real thing, "estimated" by a static model, "simulated" on a stand-in."""
    source: str = ""
    """Who produced it."""

    @property
    def value_text(self) -> str:
        """The number for people: six digits, whole numbers with all of theirs."""
        whole = self.value.is_integer() and abs(self.value) < 1e15
        return f"{self.value:.0f}" if whole else f"{self.value:.6g}"

    def __str__(self) -> str:
        unit = "" if self.unit in ("", "1") else f" {self.unit}"
        return f"{self.value_text}{unit} ({self.kind or 'kind unknown'})"


@dataclass(frozen=True)
class Artifact:
    """Immutable bytes, named by their content."""

    sha256: str
    """64 hexadecimal digits."""
    size_bytes: int = 0
    """Length."""
    media_type: str = ""
    """For example "application/onnx"."""
    name: str = ""
    """File-like name where it has one."""


@dataclass(frozen=True)
class Failure:
    """Why a stage or job failed."""

    code: str
    """Stable UPPER_SNAKE code."""
    message: str
    """One sentence."""
    subject: str = ""
    """Node, file or parameter at fault."""
    remedy: str = ""
    """One thing to do about it."""
    evidence: tuple[str, ...] = ()
    """Last lines of the tool, or numbers."""
    user_fault: bool = False
    """True when the input is at fault, false when the machinery is."""
    exit_code: int = 0
    """Exit code of the tool."""
    transform_pass: str = ""
    """Id of the pass that cures it."""
    log: Artifact | None = None
    """The whole log."""


@dataclass(frozen=True)
class Finding:
    """Something that does not stop a stage but is worth knowing."""

    code: str
    """Stable UPPER_SNAKE code."""
    severity: str
    """"note", "warning" or "error"."""
    message: str
    """One sentence."""
    subject: str = ""
    """What it is about."""
    remedy: str = ""
    """One thing to do about it."""


def to_plain(value: Any) -> Any:
    """Turn models into dicts, lists and strings that `json.dumps` takes; times become ISO 8601, no numbers words."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # as protobuf's JSON has it
    return value
