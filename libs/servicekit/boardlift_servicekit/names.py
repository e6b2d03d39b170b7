"""Names that enter a subject, a path or a permission: one token of a small alphabet, checked before use."""

from __future__ import annotations

import re
from typing import Final

from boardlift.errors import InvalidInputError

TOKEN: Final = re.compile(r"[a-z0-9-]{1,40}")


def check_token(what: str, value: str) -> str:
    """Return `value` when it is `[a-z0-9-]{1,40}`.

    Args:
        what: What it names, for the message: "job id", "board id".
        value: The name.

    Raises:
        InvalidInputError: It is not.
    """
    if not TOKEN.fullmatch(value):
        raise InvalidInputError(
            f"the {what} must match [a-z0-9-]{{1,40}}",
            reason="INVALID_NAME",
            remedy=f"Choose a {what} of lower-case letters, digits and hyphens.",
            metadata={"field": what.replace(" ", "_"), "value": value[:80]},
        )
    return value
