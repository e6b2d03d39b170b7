import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.sweep_store import Swept, discard, list_objects, sweep_partials, sweep_store

OLD = 86400.0


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


async def put(store, text, age_s=OLD):
    ref = await store.put_bytes(text.encode(), "text/plain")
    when = time.time() - age_s
    os.utime(store.path(ref.sha256), (when, when))
    return ref.sha256


async def test_what_is_named_or_was_used_lately_stays(store):
    named, used, unused = await put(store, "named"), await put(store, "used", 5), await put(store, "unused")
    swept = sweep_store(store, {named}, time.time() - 3600)
    assert swept == Swept(2, 9, 1, 6)
    assert {item.sha256 for item in list_objects(store)} == {named, used}
    assert not store.has(unused)


async def test_every_way_of_relying_on_an_object_keeps_it(store):
    ways = {}
    for name in ("asked", "put", "file", "fetched"):
        ways[name] = await put(store, name)
    path = store.root / "file"
    path.write_text("file")
    ref = await store.put_file(path, "text/plain")
    assert ref.sha256 == ways["file"]
    await store.put_bytes(b"put", "text/plain")
    assert await store.missing([ways["asked"]]) == []
    fetched = type(ref)(sha256=ways["fetched"])
    await store.fetch(fetched)
    assert sweep_store(store, (), time.time() - 60).freed_objects == 0


async def test_a_size_limit_takes_what_was_used_longest_ago_and_no_more(store):
    digests = [await put(store, f"{i}" * 10, age_s=OLD - i) for i in range(10)]
    swept = sweep_store(store, {digests[0]}, time.time() - 3600, most_bytes=65)
    assert (swept.objects, swept.freed_objects) == (6, 4)
    assert [store.has(digest) for digest in digests] == [True, *[False] * 4, *[True] * 5]


async def test_an_object_taken_into_use_between_the_list_and_the_removal_stays(store):
    digest = await put(store, "late")
    since = time.time() - 3600
    assert store.touch(digest)
    assert not discard(store, digest, since)
    assert store.has(digest)


async def test_foreign_files_are_left_alone(store):
    (store.objects / "README").write_text("x")
    (store.objects / "ab").mkdir()
    (store.objects / "ab" / "notes").write_text("x")
    assert sweep_store(store, (), time.time() + 60) == Swept()
    assert (store.objects / "ab" / "notes").exists()


async def test_old_partials_and_remains_of_sweeps_go_fresh_ones_stay(store):
    for name, age in (("a.part", OLD), ("b.part", 5), ("put-x", OLD), ("gone-y", 0)):
        path = store.uploads / name
        path.write_bytes(b"1234")
        os.utime(path, (time.time() - age,) * 2)
    assert sweep_partials(store, time.time() - 3600) == 12
    assert [path.name for path in store.uploads.iterdir()] == ["b.part"]


async def test_users_and_sweeps_at_once_never_lose_what_somebody_relies_on(store):
    """Eight threads ask "is it there?" and put it again when not, four sweep all they may: no answer is ever a lie."""
    bodies = [f"body {i}".encode() for i in range(40)]
    digests = [hashlib.sha256(body).hexdigest() for body in bodies]
    stop, lies, removed = threading.Event(), [], []
    held: set[str] = set()
    guard = threading.Lock()

    def rely(turn):
        while not stop.is_set():
            turn += 1
            digest, body = digests[turn % 40], bodies[turn % 40]
            with guard:
                if digest in held:
                    continue
                held.add(digest)
            if not store.touch(digest):
                store._put([body], "x")
            lies.extend(digest for _ in range(20) if not store.path(digest).is_file())
            with guard:  # nobody relies on it any more, and a day goes by
                os.utime(store.path(digest), (time.time() - OLD,) * 2)
                held.discard(digest)

    def sweep():
        while not stop.is_set():
            removed.append(sweep_store(store, (), time.time() - 60).freed_objects)

    threads = [threading.Thread(target=rely, args=(i * 5,)) for i in range(8)]
    threads += [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    await asyncio.sleep(3)
    stop.set()
    for thread in threads:
        thread.join()
    assert sum(removed) > 50
    assert lies == []


KILLED = """
import sys, time
from pathlib import Path
from boardlift_servicekit import sweep_store
from boardlift_servicekit.artifacts import LocalStore
plain = Path.unlink
def slow(self, missing_ok=False):
    print("removing", flush=True); time.sleep(60)
Path.unlink = slow
sweep_store.sweep_store(LocalStore(Path(sys.argv[1])), (), time.time() - 60)
"""


async def test_a_sweep_that_is_killed_holds_nobody_up_and_the_next_one_finishes(store):
    digest = await put(store, "big")
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(store.root)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"removing\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert await store.missing([digest]) == [digest]
    ref = await store.put_bytes(b"big", "text/plain")
    assert (await store.fetch(ref)).read_bytes() == b"big"
    assert [path.name for path in store.uploads.iterdir()] == [f"gone-{digest}"]
    assert sweep_partials(store, time.time() - 60) == 3
    assert store.has(digest)
