import asyncio
import os
import time
from datetime import timedelta

import pytest
from boardlift.v1 import board_agent_pb2

from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.executions import Executions
from boardlift_servicekit.keeper import Keeper, KeepSettings, store_info
from boardlift_servicekit.server import Host, ServerSettings
from boardlift_servicekit.settings import from_environment

DAY = 86400.0


def age(path, days):
    os.utime(path, (time.time() - days * DAY,) * 2)


@pytest.fixture
async def folder(tmp_path):
    store = LocalStore(tmp_path / "artifacts")
    for name, days in (("old", 10), ("lately", 2), ("fresh", 0)):
        ref = await store.put_bytes(name.encode() * 1000, "text/plain")
        age(store.path(ref.sha256), days)
    (tmp_path / "results").mkdir()
    for name, days in (("old.pb", 10), ("new.pb", 1)):
        (tmp_path / "results" / name).write_bytes(b"12345")
        age(tmp_path / "results" / name, days)
    (store.uploads / "x.part").write_bytes(b"123")
    age(store.uploads / "x.part", 2)
    for name, days in (("dataset-old", 2), ("dataset-new", 0), ("other", 2)):
        (tmp_path / name).mkdir()
        age(tmp_path / name, days)
    return tmp_path, store


def sizes(store):
    return sorted(path.stat().st_size for path in store.objects.rglob("*") if path.is_file())


async def test_one_sweep_removes_what_is_old_of_every_kind_and_says_so(folder):
    root, store = folder
    assert store_info(store) is None
    Keeper(store, [root / "results", root / "none"], KeepSettings(), scratch=(root, "dataset-")).tidy()
    assert sizes(store) == [5000, 6000]
    assert [path.name for path in (root / "results").iterdir()] == ["new.pb"]
    assert list(store.uploads.iterdir()) == []
    assert {path.name for path in root.iterdir()} == {"artifacts", "results", "dataset-new", "other"}
    info = store_info(store)
    assert (info.objects, info.size_bytes, info.freed_objects, info.freed_bytes) == (2, 11000, 1, 3008)
    assert abs(info.sweep_time.ToNanoseconds() / 1e9 - time.time()) < 5


async def test_a_store_over_its_limit_gives_up_more_but_never_what_is_fresh(folder):
    _, store = folder
    Keeper(store, [], KeepSettings(max_store_bytes=100)).tidy()
    assert sizes(store) == [5000]
    info = store_info(store)
    assert info.limit_bytes == 100 and info.size_bytes == 5000


async def test_what_a_long_stage_has_made_early_stays_until_it_ends(folder):
    root, store = folder
    go = asyncio.Event()

    async def work(_emitter):
        await go.wait()
        return board_agent_pb2.RunResult()

    executions = Executions(root / "results", store, slots=1)
    keep = KeepSettings(keep_unused=timedelta(0), keep_fresh=timedelta(hours=6), max_store_bytes=100)
    keeper = Keeper(store, [root / "results"], keep, scratch=(root, "dataset-"), executions=[executions])

    async def run():
        return [item async for item in executions.run("k", "", board_agent_pb2.RunResult, work)]

    running = asyncio.create_task(run())
    await asyncio.sleep(0.1)
    execution = executions._running["k"]
    execution.begun = time.time() - 3 * DAY  # it uploaded `lately` after a day
    keeper.tidy()
    assert sizes(store) == [5000, 6000] and (root / "dataset-old").exists()
    go.set()
    assert (await running)[-1].execution.digest == "k"
    keeper.tidy()
    assert sizes(store) == [5000] and not (root / "dataset-old").exists()
    await executions.close()


async def test_it_runs_beside_a_server_from_start_to_stop(folder):
    _, store = folder
    host = Host("test", ServerSettings())
    Keeper(store, [], KeepSettings(tidy_every=timedelta(seconds=0.1))).attach(host)
    await host.start()
    for _ in range(100):
        if store_info(store) is not None:
            break
        await asyncio.sleep(0.05)
    assert sizes(store) == [5000, 6000]
    await host.stop()


def test_times_come_from_the_environment_and_are_bounded():
    settings = from_environment(KeepSettings, {"BOARDLIFT_KEEP_UNUSED": "0", "BOARDLIFT_MAX_STORE_BYTES": "1000"})
    assert settings.unused_since(100_000.0) == 100_000.0 - 6 * 3600
    with pytest.raises(Exception, match="BOARDLIFT_KEEP_FRESH"):
        from_environment(KeepSettings, {"BOARDLIFT_KEEP_FRESH": "0"})
