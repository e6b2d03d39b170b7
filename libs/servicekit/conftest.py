from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from boardlift_servicekit import messaging
from boardlift_servicekit.streams import QueueLimits, ensure_streams
from support.nats_server import running_nats


@pytest.fixture
def nats_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real nats-server that a test may kill and start again."""
    with running_nats(tmp_path_factory.mktemp("nats")) as stack:
        yield stack


@pytest.fixture
async def client(nats_stack: Any) -> AsyncIterator[Any]:
    """A connection to it, with all streams made."""
    connected = await messaging.connect(nats_stack.nats_url, "test", reconnect_time_wait=0.1)
    await ensure_streams(connected.jetstream(), QueueLimits(ack_wait_s=1.0))
    yield connected
    await connected.close()
