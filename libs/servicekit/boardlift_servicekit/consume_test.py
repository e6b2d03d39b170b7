from __future__ import annotations

import asyncio
import collections
from typing import Any

import pytest
from nats.aio.msg import Msg

from boardlift_servicekit.consume import Consume, Pace, Slots, acknowledge
from boardlift_servicekit.messaging import TASK_STREAM, retry

PACE = Pace(heartbeat_s=0.5, beat_s=0.3)


async def publish(client: Any, count: int, start: int = 0) -> None:
    js = client.jetstream()
    for index in range(start, start + count):
        headers = {"Nats-Msg-Id": f"m{index}"}
        await retry(lambda h=headers, i=index: js.publish("task.check.j", str(i).encode(), headers=dict(h)))  # type: ignore[misc]


async def wait_for(done: Any, seconds: float = 15.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if done():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_at_most_as_many_run_as_there_are_slots(client: Any) -> None:
    running, most, seen = 0, 0, []

    async def handle(message: Msg) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        seen.append(message.data)
        await acknowledge(message)

    await publish(client, 30)
    consume = await Consume(client, TASK_STREAM, "compiler", handle, slots=Slots(3), pace=PACE).start()
    await wait_for(lambda: len(seen) == 30)
    await consume.stop()
    assert most == 3 and len(set(seen)) == 30


async def test_long_work_is_kept_by_beats(client: Any) -> None:
    seen = []

    async def handle(message: Msg) -> None:
        seen.append(message.data)
        await asyncio.sleep(2.5)  # the consumer's ack wait is 1 s
        await acknowledge(message)

    await publish(client, 1)
    consume = await Consume(client, TASK_STREAM, "compiler", handle, slots=Slots(2), pace=PACE).start()
    await asyncio.sleep(3.5)
    await consume.stop()
    assert seen == [b"0"]


async def test_a_handler_that_raises_gives_the_message_back(client: Any) -> None:
    seen: collections.Counter[bytes] = collections.Counter()

    async def handle(message: Msg) -> None:
        seen[message.data] += 1
        if seen[message.data] == 1:
            raise ValueError("once")
        await acknowledge(message)

    await publish(client, 2)
    consume = await Consume(client, TASK_STREAM, "compiler", handle, slots=Slots(2), pace=PACE).start()
    await wait_for(lambda: all(seen[key] == 2 for key in (b"0", b"1")))
    await consume.stop()


async def test_a_paused_consumer_takes_nothing(client: Any) -> None:
    seen = []

    async def handle(message: Msg) -> None:
        seen.append(message.data)
        await acknowledge(message)

    consume = await Consume(client, TASK_STREAM, "compiler", handle, slots=Slots(1), pace=PACE).start()
    consume.pause()
    await publish(client, 3)
    await asyncio.sleep(1.0)
    assert seen == []
    await consume.resume()
    await wait_for(lambda: len(seen) == 3)
    await consume.stop()


async def test_stopping_gives_what_runs_to_the_next_one(client: Any) -> None:
    begun, done = [], []

    async def stall(message: Msg) -> None:
        begun.append(message.data)
        await asyncio.sleep(60)

    async def handle(message: Msg) -> None:
        done.append(message.data)
        await acknowledge(message)

    await publish(client, 2)
    first = await Consume(client, TASK_STREAM, "compiler", stall, slots=Slots(2), pace=PACE).start()
    await wait_for(lambda: len(begun) == 2)
    await first.stop()
    second = await Consume(client, TASK_STREAM, "compiler", handle, slots=Slots(2), pace=PACE).start()
    await wait_for(lambda: len(done) == 2, 10.0)
    await second.stop()


@pytest.mark.timeout(60)
async def test_nothing_is_lost_when_the_server_is_killed(nats_stack: Any, client: Any) -> None:
    seen: collections.Counter[bytes] = collections.Counter()

    async def handle(message: Msg) -> None:
        await asyncio.sleep(0.01)
        seen[message.data] += 1
        await acknowledge(message)

    consume = await Consume(client, TASK_STREAM, "compiler", handle, slots=Slots(4), pace=PACE).start()
    publishing = asyncio.create_task(publish(client, 300))
    for _ in range(2):
        await asyncio.sleep(0.3)
        nats_stack.nats.kill()
        nats_stack.nats.start()
    await publishing
    await wait_for(lambda: len(seen) == 300, 30)
    await consume.stop()
    assert sum(seen.values()) - 300 <= 2 * 4 * 2  # what was in hand at a kill may come again
