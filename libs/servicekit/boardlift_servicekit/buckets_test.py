from __future__ import annotations

import asyncio
from typing import Any

import pytest
from boardlift.errors import ConflictError

from boardlift_servicekit.buckets import Bucket


@pytest.fixture
def bucket(client: Any) -> Bucket:
    return Bucket(client, client.jetstream(), "BOARD")


async def test_a_key_is_read_back_with_its_revision(bucket: Bucket) -> None:
    assert await bucket.get("a") is None
    revision = await bucket.put("a", b"1", revision=0)
    entry = await bucket.get("a")
    assert entry is not None and (entry.value, entry.revision) == (b"1", revision)


async def test_compare_and_set_lets_one_of_many_win(bucket: Bucket) -> None:
    revision = await bucket.put("a", b"0", revision=0)
    tries = [bucket.put("a", str(i).encode(), revision=revision) for i in range(8)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(item, int) for item in outcomes) == 1
    assert sum(isinstance(item, ConflictError) for item in outcomes) == 7
    with pytest.raises(ConflictError):
        await bucket.put("a", b"x", revision=0)


async def test_a_removed_key_is_absent_and_can_be_made_again(bucket: Bucket) -> None:
    await bucket.put("a", b"1")
    await bucket.remove("a")
    assert await bucket.get("a") is None
    assert await bucket.entries() == []
    await bucket.put("a", b"2")
    assert [entry.value for entry in await bucket.entries()] == [b"2"]


async def test_a_key_with_a_life_time_ends_by_itself_and_a_renewal_prolongs_it(client: Any) -> None:
    presence = Bucket(client, client.jetstream(), "PRESENCE")
    await presence.put("short", b"1", life_s=1)
    await presence.put("renewed", b"1", life_s=1)
    for _ in range(4):
        await asyncio.sleep(0.5)
        await presence.put("renewed", b"1", life_s=1)
    assert await presence.get("short") is None
    assert [entry.key for entry in await presence.entries()] == ["renewed"]


async def test_all_of_many_large_entries_are_listed_and_later_only_what_changed(bucket: Bucket) -> None:
    names = [f"k{i:04d}" for i in range(1300)]
    for start in range(0, len(names), 100):
        await asyncio.gather(*(bucket.put(name, name.encode() * 600) for name in names[start : start + 100]))
    assert [entry.key for entry in await bucket.entries()] == names
    found: dict[str, Any] = {}
    revision = await bucket.changes(found, 0)
    assert len(found) == 1300
    await bucket.put("k0007", b"new")
    await bucket.remove("k0008")
    changed: dict[str, Any] = {"k0008": None}
    newest = await bucket.changes(changed, revision)
    assert list(changed) == ["k0007"] and newest > revision
    assert await bucket.changes({}, newest) == newest
