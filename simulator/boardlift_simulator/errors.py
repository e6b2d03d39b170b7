"""Errors of the stand-in, each with the runtime's own numeric code."""

from __future__ import annotations

CANNOT_OPEN = -6000006
INVALID_MODEL = -6000002
INVALID_ARGUMENT = -6000001
TASK_FAILED = -6000012
OUT_OF_MEMORY = -6000007


class BoardError(Exception):
    """The simulated runtime refuses; printed as an error line, exit code 1."""

    def __init__(self, code: int, message: str) -> None:
        """Keeps the runtime's code and a sentence.

        Args:
            code: one of the runtime's documented negative codes.
            message: what went wrong, one sentence.
        """
        super().__init__(message)
        self.code = code
        self.message = message
