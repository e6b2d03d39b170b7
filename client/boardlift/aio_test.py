from __future__ import annotations

import inspect

import numpy as np
import pytest

from boardlift import aio
from boardlift import client as sync
from boardlift.errors import (
    CancelledError,
    DataLossError,
    DeadlineError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)
from boardlift.testing import FakeServer, Scenario, StageScript


@pytest.fixture
async def async_client(server):
    async with aio.Client(server.address) as connected:
        yield connected


async def test_a_job_goes_from_model_to_verdict_and_files(async_client, model, samples, tmp_path):
    job = await async_client.run(model, samples, ["int16", "int8"], gates=["cosine>=0.99"])
    await job.wait(timeout=10)
    assert job.verdict.passed and job.reasons == ()
    assert (await job.artifacts["int8.bin"].save(tmp_path)).read_bytes() == b"made up int8"
    assert (await job.report())["verdict"]["outcome"] == "pass"
    assert [info.id async for info in async_client.jobs()] == [job.id]


async def test_events_come_once_and_in_order_across_broken_lines(model, samples):
    scenario = Scenario(step_s=0.01, stages={"compile/int8": StageScript(lines=("calibrate",))})
    with FakeServer(scenario) as server:
        async with aio.Client(server.address) as client:
            server.fail("WatchJob", times=4, after=5)
            events = [event async for event in (await client.run(model, samples)).events()]
    numbers = [event.sequence for event in events if event.sequence]
    assert numbers == list(range(1, len(numbers) + 1)) and events[-1].job.state == "succeeded"


async def test_cancel_and_time_out(model, samples):
    with FakeServer(Scenario(step_s=30)) as server:
        async with aio.Client(server.address) as client:
            job = await client.run(model, samples)
            with pytest.raises(DeadlineError):
                await job.wait(timeout=0.2)
            await job.cancel()
            with pytest.raises(CancelledError):
                await job.wait(timeout=10)


async def test_a_job_that_is_removed_by_a_try_whose_answer_is_lost_is_removed(async_client, server, model, samples):
    job = await (await async_client.run(model, samples)).wait()
    server.fail("DeleteJob", after=1)
    await async_client.delete_job(job.id)
    assert server.calls["DeleteJob"] == 2
    with pytest.raises(NotFoundError):
        await async_client.delete_job(job.id)


async def test_transfers_go_on_where_they_broke(async_client, server, tmp_path):
    path = tmp_path / "big.bin"
    path.write_bytes(np.random.default_rng(0).bytes(3_000_000))
    server.fail("UploadArtifact", times=2, after=4)
    artifact = await async_client.push(path)
    server.fail("DownloadArtifact", times=2, after=3)
    assert (await async_client.fetch(artifact, tmp_path / "back")).read_bytes() == path.read_bytes()
    assert server.artifacts.uploads == 3
    server.artifacts.stored["0" * 64] = (b"something else", "")
    with pytest.raises(DataLossError):
        await async_client.fetch_bytes("0" * 64)


async def test_errors_are_those_of_the_sync_client(async_client, model, samples):
    with pytest.raises(InvalidInputError, match="VARIANT_INVALID"):
        await async_client.run(model, samples, ["mine"])
    async with aio.Client("127.0.0.1:1", patience_s=0.3) as client:
        with pytest.raises(UnavailableError):
            await client.boards()


async def test_a_clone_is_another_job(async_client, server, model, samples):
    job = await async_client.run(model, samples, ["int8"])
    again = await job.clone(variants=["int16"], data=samples, model=model)
    assert again.id != job.id and again.info.variants == ("int16",)


async def test_boards_and_server_info(async_client):
    assert (await async_client.boards())[0].simulated and await async_client.devices({"lab": "no"}) == []
    assert (await async_client.server_info()).name == "boardlift.testing"


@pytest.mark.parametrize("name", ["Client", "Job", "ArtifactFile"])
def test_the_twins_have_the_same_methods_and_parameters(name):
    def surface(cls):
        every = {k: v for base in cls.__mro__[:-1] for k, v in vars(base).items()}
        members = {k: v for k, v in every.items() if not k.startswith("_")}
        functions = {k: v for k, v in members.items() if inspect.isfunction(v)}
        return {k: list(inspect.signature(v).parameters) for k, v in functions.items()}, set(members)

    assert surface(getattr(sync, name)) == surface(getattr(aio, name))
