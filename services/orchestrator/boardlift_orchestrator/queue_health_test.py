from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from boardlift.errors import UnavailableError
from boardlift_servicekit.buckets import Bucket
from boardlift_servicekit.messaging import connect
from boardlift_servicekit.streams import QueueLimits, ensure_streams
from support.nats_server import running_nats

from boardlift_orchestrator import queue_health
from boardlift_orchestrator.queue_health import SERVICES, QueueHealth


class Host:
    """Remembers what gRPC health would say."""

    def __init__(self) -> None:
        self.serving = dict.fromkeys(SERVICES, True)

    async def set_serving(self, service: str, serving: bool) -> None:
        self.serving[service] = serving


class Lab:
    def __init__(self, stack: Any, client: Any) -> None:
        self.stack, self.client, self.host = stack, client, Host()
        self.jobs = Bucket(client, client.jetstream(), "JOB")
        self.health = QueueHealth(client, self.jobs)

    async def until(self, codes: list[str], serving: bool) -> None:
        """Wait for what is said; pytest's own time limit ends it."""
        while [f.code for f in self.health.findings()] != codes or set(self.host.serving.values()) != {serving}:
            await asyncio.sleep(0.05)

    async def let_it_store(self, stores: bool) -> None:
        """A stream that takes no byte more stands for a disk that is full."""
        js = self.client.jetstream()
        config = (await js.stream_info("KV_LEASE")).config
        await js.update_stream(config.evolve(max_bytes=-1 if stores else 1))


@pytest.fixture
async def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    for name, seconds in (("_LOOK_S", 0.1), ("_WRITE_EVERY_S", 0.2), ("_PATIENCE_S", 3.0), ("_AWAY_S", 0.5)):
        monkeypatch.setattr(queue_health, name, seconds)
    with running_nats(tmp_path) as stack:
        client = await connect(stack.nats_url, "test", reconnect_time_wait=0.1)
        await ensure_streams(client.jetstream(), QueueLimits())
        made = Lab(stack, client)
        running = asyncio.create_task(made.health.run(made.host))  # type: ignore[arg-type]
        yield made
        running.cancel()
        await client.close()


@pytest.mark.timeout(60)
async def test_a_queue_that_answers_and_stores_nothing_is_named_until_it_stores(lab: Lab) -> None:
    await lab.until([], serving=True)
    lab.health.check()
    await lab.let_it_store(False)
    await lab.until(["NATS_NOT_STORING"], serving=False)
    with pytest.raises(UnavailableError, match="NATS_NOT_STORING"):
        lab.health.check()
    await lab.let_it_store(True)
    await lab.until([], serving=True)
    lab.health.check()


@pytest.mark.timeout(60)
async def test_a_queue_that_is_away_is_waited_for(lab: Lab) -> None:
    await lab.until([], serving=True)
    lab.stack.nats.kill()
    await lab.until(["NATS_UNAVAILABLE"], serving=False)
    lab.health.check()  # nothing to refuse: the calls wait for a moment by themselves
    lab.stack.nats.start()
    await lab.until([], serving=True)


@pytest.mark.timeout(60)
async def test_a_write_of_a_job_that_gets_no_answer_is_noticed(lab: Lab) -> None:
    await lab.until([], serving=True)
    await lab.client.jetstream().delete_stream("KV_JOB")  # nobody answers a write to it
    writing = asyncio.create_task(lab.jobs.put("j", b"{}"))
    await lab.until(["NATS_NOT_STORING"], serving=False)
    await ensure_streams(lab.client.jetstream(), QueueLimits())
    await writing
    await lab.until([], serving=True)
