"""Pages of a list: opaque tokens that stay valid while entries come and go. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from boardlift.errors import InvalidInputError

T = TypeVar("T")


def cut_page(items: Sequence[T], key: Callable[[T], str], page_size: int, page_token: str) -> tuple[list[T], str]:
    """Return one page of items that are sorted by `key`, and the token of the next page ("" at the end).

    Raises:
        InvalidInputError: The size or the token is not valid.
    """
    if not 0 <= page_size <= 1000:
        raise InvalidInputError(
            "The page size must lie between 1 and 1000.",
            reason="PAGE_SIZE_INVALID",
            remedy="Ask for a size in that range.",
            metadata={"field": "page_size"},
        )
    after = _decode(page_token) if page_token else ""
    rest = [item for item in items if key(item) > after]
    size = page_size or 50
    page = rest[:size]
    return page, _encode(key(page[-1])) if len(rest) > size else ""


def newest_first(created: float, name: str) -> str:
    """Return a sort key that puts later times first."""
    return f"{10**17 - round(created * 1e6):017d}/{name}"


def _encode(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode()


def _decode(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise InvalidInputError(
            "The page token is not one of ours.",
            reason="PAGE_TOKEN_INVALID",
            remedy="Give next_page_token of the page before, or none.",
            metadata={"field": "page_token"},
        ) from error
