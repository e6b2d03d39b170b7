from __future__ import annotations

import asyncio
from typing import Any

from boardlift_servicekit.lease import Lease


async def test_one_holds_it_and_it_ends_by_itself(client: Any) -> None:
    js = client.jetstream()
    first, second = Lease(js, "sweeper", "a", life_s=2), Lease(js, "sweeper", "b", life_s=2)
    assert await first.step()
    assert not await second.step()
    for _ in range(4):  # renewed well beyond its life, with time to spare on a busy machine
        await asyncio.sleep(0.7)
        assert await first.step()
        assert not await second.step()
    old = first.revision
    await asyncio.sleep(3.0)  # the holder has stalled
    assert await second.step()
    assert second.revision > old
    assert not await first.step()


async def test_it_can_be_given_up_at_once(client: Any) -> None:
    js = client.jetstream()
    first, second = Lease(js, "k", "a", life_s=5), Lease(js, "k", "b", life_s=5)
    assert await first.step()
    await first.release()
    assert await second.step()
    assert not await first.step()


async def test_a_renewal_whose_answer_was_lost_is_its_own(client: Any) -> None:
    js = client.jetstream()
    first, second = Lease(js, "lost-answer", "a", life_s=5), Lease(js, "lost-answer", "b", life_s=5)
    assert await first.step()
    headers = {"Nats-Expected-Last-Subject-Sequence": str(first.revision), "Nats-TTL": "5s"}
    await js.publish("$KV.LEASE.lost-answer", first.value, headers=headers)
    assert not await first.step()  # somebody has written: who, is looked at next
    assert not await second.step()
    assert await first.step()
