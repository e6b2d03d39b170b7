from __future__ import annotations

import pytest
from boardlift.errors import InvalidInputError

from boardlift_orchestrator.paging import cut_page, newest_first


def test_pages_cover_everything_once_while_entries_come_and_go() -> None:
    items = [f"{i:03d}" for i in range(10)]
    first, token = cut_page(items, str, 4, "")
    items.remove("002")
    items.insert(0, "-new")
    second, token = cut_page(items, str, 4, token)
    third, end = cut_page(items, str, 4, token)
    assert (first, second, third, end) == (
        [*items[1:3], "002", "003"],
        ["004", "005", "006", "007"],
        ["008", "009"],
        "",
    )


def test_an_exact_page_has_no_next_one() -> None:
    assert cut_page(["a", "b"], str, 2, "") == (["a", "b"], "")
    assert cut_page([], str, 0, "") == ([], "")


@pytest.mark.parametrize(("size", "token"), [(-1, ""), (1001, ""), (1, "%%%"), (1, "/w==")])
def test_wrong_sizes_and_tokens_are_refused(size: int, token: str) -> None:
    with pytest.raises(InvalidInputError):
        cut_page(["a"], str, size, token)


def test_newest_comes_first() -> None:
    assert newest_first(2.0, "a") < newest_first(1.0, "z")
