"""The one exception of the graph code: a model or request that is refused, by name.

Graph passes must not import the service's error classes (they know onnx and numpy only), so the same fields live here.
The server maps `Refusal` to the wire.
"""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """The input cannot be transformed rightly, and this says why and what to do.

    Attributes:
        reason: Stable UPPER_SNAKE name of the cause.
        message: One sentence for a person, with the offending names.
        remedy: What the caller can do about it; empty when nothing is known.
        metadata: All variable parts of the message, as strings.
        retryable: Always False: the same input is refused again.
    """

    retryable = False

    def __init__(
        self, reason: str, message: str, *, remedy: str = "", metadata: Mapping[str, object] | None = None
    ) -> None:
        """Store the fields; every metadata value becomes a string."""
        super().__init__(f"{reason}: {message}" + (f" ({remedy})" if remedy else ""))
        self.reason = reason
        self.message = message
        self.remedy = remedy
        self.metadata = {key: str(value) for key, value in (metadata or {}).items()}
