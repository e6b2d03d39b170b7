from __future__ import annotations

from typing import Any

from boardlift_servicekit.messaging import EVENT_STREAM
from boardlift_servicekit.streams import QueueLimits, ensure_streams


async def test_of_histories_the_oldest_events_go_when_there_are_too_many_bytes(client: Any) -> None:
    """Also in a queue that was made with another limit."""
    js = client.jetstream()
    await ensure_streams(js, QueueLimits(event_bytes=50_000))
    for _ in range(100):
        last = await js.publish("evt.job.j.log", b"x" * 1000)
    state = (await js.stream_info(EVENT_STREAM)).state
    assert 20 < state.messages < 50 and state.bytes <= 50_000
    assert state.last_seq == last.seq and (await js.get_msg(EVENT_STREAM, last.seq)).data == b"x" * 1000
