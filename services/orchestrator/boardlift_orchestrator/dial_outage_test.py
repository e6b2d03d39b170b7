"""NATS goes away while a dialled board measures: the call goes on, and the measurement is not begun anew."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.dial_lab import DialLab, until
from support.nats_server import running_nats


@pytest.mark.timeout(90)
@pytest.mark.parametrize("other", [False, True])
async def test_a_run_outlives_an_outage_longer_than_all_leases(tmp_path: Path, other: bool) -> None:
    with running_nats(tmp_path) as stack:
        lab = await DialLab(stack.nats_url, tmp_path, "t").start()
        agent = await lab.agent(1)
        await lab.dialler()
        await lab.until_in_rotation(agent)
        if other:
            await lab.dialler()
        agent.go.clear()
        agent.executions._grace_s = 0.5  # who hangs up is noticed
        await lab.send(f"id.{agent.info.id}", "job")
        await until(lambda: agent.runs)
        await lab.register(agent.info, life_s=4)  # its sign of life ends, too, and comes again some seconds later
        stack.nats.kill()
        await asyncio.sleep(8)  # a lease lasts 3 s
        stack.nats.start()
        stack.wait_for_nats()
        await until(lambda: lab.client.is_connected)
        await asyncio.sleep(4)
        await lab.register(agent.info)
        await asyncio.sleep(4)
        assert agent.stopped == 0 and not lab.outcomes
        agent.go.set()
        await until(lambda: lab.outcomes)
        assert len(agent.runs) == 1 and agent.stopped == 0 and lab.outcomes[0].HasField("result")
        await lab.stop()
