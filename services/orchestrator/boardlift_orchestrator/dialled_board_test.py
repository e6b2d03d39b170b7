from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from boardlift.v1 import board_agent_pb2, queue_pb2
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.messaging import publish_stop
from support.dial_lab import DialLab, until, until_reasons
from support.nats_server import running_nats

from boardlift_orchestrator.registry import LEASE_PREFIX


@pytest.fixture(scope="module")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_nats(tmp_path_factory.mktemp("nats")) as stack:
        yield stack.nats_url


@pytest.fixture
async def lab(nats_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[DialLab]:
    names = [item.name for item in request.session.items]
    made = await DialLab(nats_url, tmp_path, f"t{names.index(request.node.name)}").start()
    yield made
    await made.stop()


async def test_a_wrong_board_behind_the_address_is_out_of_rotation_until_it_is_corrected(lab: DialLab) -> None:
    right, other = await lab.agent(1), await lab.agent(2, target="elsewhere")
    good = right.info.address
    claimed = board_agent_pb2.BoardInfo()
    claimed.CopyFrom(right.info)
    claimed.address = other.info.address
    await lab.register(claimed)
    await lab.dialler()
    await until_reasons(lab, right, "DIAL_WRONG_BOARD")
    await lab.send(f"id.{right.info.id}", "job")
    await asyncio.sleep(1.5)
    assert not right.runs and not other.runs and not lab.outcomes
    finding = (await lab.board(right)).state.findings[0]
    assert other.info.id in finding.message and finding.remedy
    claimed.address = good
    await lab.register(claimed)
    await until(lambda: lab.outcomes)
    assert lab.outcomes[0].worker == right.info.id and len(right.runs) == 1


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("192.0.2.9:7403", "DIAL_ADDRESS_REFUSED"),
        ("no-such-host.invalid:7403", "DIAL_ADDRESS_UNKNOWN"),
        ("127.0.0.1:1", "DIAL_UNREACHABLE"),
    ],
)
async def test_an_address_that_leads_nowhere_is_said(lab: DialLab, address: str, code: str) -> None:
    agent = await lab.agent(1)
    agent.info.address = address
    await lab.register(agent.info)
    await lab.dialler()
    await until_reasons(lab, agent, code)


async def test_a_board_that_turns_out_wrong_at_a_run_keeps_the_stage_for_another(lab: DialLab) -> None:
    bad = await lab.agent(1)
    await lab.dialler()
    await lab.until_in_rotation(bad)
    bad.info.boot_id = "boot-2"  # started anew since it was checked, and has not registered yet
    await lab.send(f"pool.{lab.name}", "job")
    await until(lambda: lab.outcomes)
    assert lab.outcomes[0].retryable and lab.outcomes[0].failure.code == "DIAL_WRONG_BOARD"
    await lab.send(f"pool.{lab.name}", "job", attempt=2)
    good = await lab.agent(2)
    await until(lambda: len(lab.outcomes) == 2)
    assert lab.outcomes[1].worker == good.info.id and lab.outcomes[1].HasField("result")
    await until_reasons(lab, bad, "DIAL_WRONG_BOARD")
    assert not bad.runs


async def test_a_person_who_has_the_board_keeps_work_away(lab: DialLab) -> None:
    agent = await lab.agent(1)
    await lab.dialler()
    await lab.until_in_rotation(agent)
    key = LEASE_PREFIX + agent.info.id
    lease = queue_pb2.BoardLease(board_id=agent.info.id, lease_id="l", holder="ann")
    lease.end_time.FromSeconds(int(time.time()) + 60)
    await lab.buckets.leases.put(key, lease.SerializeToString(), life_s=60)
    await lab.client.publish(f"ctl.board.{agent.info.id}", lease.SerializeToString())
    await asyncio.sleep(0.3)
    await lab.send(f"id.{agent.info.id}", "job")
    await asyncio.sleep(2.5)
    assert not agent.runs
    await lab.buckets.leases.remove(key)
    await until(lambda: lab.outcomes)


async def test_a_board_out_of_rotation_gets_nothing_until_it_is_back(lab: DialLab) -> None:
    agent = await lab.agent(1)
    await lab.register(agent.info, fit=False)
    await lab.dialler()
    await until(lambda: agent.tokens)
    await lab.send(f"id.{agent.info.id}", "job")
    await asyncio.sleep(1.5)
    assert not agent.runs
    await lab.register(agent.info)
    await until(lambda: lab.outcomes)


async def test_a_stop_reaches_the_board_in_time(lab: DialLab) -> None:
    agent = await lab.agent(1)
    await lab.dialler()
    await lab.until_in_rotation(agent)
    agent.go.clear()
    await lab.send(f"pool.{lab.name}", "job")
    await until(lambda: agent.runs)
    begun = time.monotonic()
    await publish_stop(lab.client, queue_pb2.StopStage(job_id=f"{lab.name}-job"))
    await until(lambda: lab.outcomes)
    assert lab.outcomes[0].cancelled and agent.stopped == 1
    assert time.monotonic() - begun < 15


async def test_each_board_gets_its_own_token_and_never_the_orchestrators(lab: DialLab) -> None:
    known, unknown = await lab.agent(1), await lab.agent(2)
    tokens = lab.folder / "tokens"
    tokens.mkdir()
    (tokens / known.info.id).write_text("for-this-board\n")
    (lab.folder / "own").write_text("orchestrators-own\n")
    await lab.dialler(tokens=tokens, channel=ChannelSettings(token_file=lab.folder / "own"))
    await lab.until_in_rotation(known, unknown)
    assert set(known.tokens) == {"Bearer for-this-board"} and set(unknown.tokens) == {""}
