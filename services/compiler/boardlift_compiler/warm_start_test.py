"""What the warm start does when its parent dies at the worst moment; the rest is in `run_mapper_test.py`."""

import asyncio
import contextlib
import socket
from pathlib import Path

import pytest
from boardlift_servicekit.tool import ToolCommand

from boardlift_compiler.toolchain import Toolchain
from boardlift_compiler.warm_start import WarmStart, _Parent, _read_messages


async def test_a_parent_that_dies_before_it_forks_ends_the_run_at_once(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    process = await asyncio.create_subprocess_exec("sleep", "60")
    parent = _Parent(process, contextlib.ExitStack(), ours)
    parent.reader = asyncio.create_task(_read_messages(parent))
    command = ToolCommand(["hb_mapper"], tmp_path, timeout_s=60.0)
    running = asyncio.create_task(WarmStart(None, tmp_path)._run(parent, command, None))
    await asyncio.sleep(0.1)
    theirs.close()
    try:
        result = await asyncio.wait_for(running, 5)
    finally:
        process.kill()
        await process.wait()
        ours.close()
    assert (result.exit_code, result.signal, result.timed_out) == (137, 9, False)


def made_up(tmp_path):
    """A toolchain whose interpreter is for the test to make."""
    (tmp_path / "toolchain/bin").mkdir(parents=True)
    (tmp_path / "toolchain/bin/hb_mapper").write_text("#!/bin/sh\n")
    return Toolchain(tmp_path / "toolchain", "0")


def open_files():
    return sorted(p.name for p in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("program", ["absent", "not executable", "ends at once"])
async def test_a_parent_that_cannot_start_leaves_neither_folder_nor_socket(tmp_path, program):
    toolchain, runs = made_up(tmp_path), tmp_path / "runs"
    python = toolchain.python
    if program == "not executable":
        python.write_text("#!/bin/sh\n")
    elif program == "ends at once":
        python.symlink_to("/bin/false")
    warm = WarmStart(toolchain, runs)
    assert await warm._ensure_parent() is None  # asyncio keeps files of its own from the first start on
    before = open_files()
    for _ in range(3):
        assert await warm._ensure_parent() is None
    assert list(runs.iterdir()) == []
    assert open_files() == before


async def test_a_cancelled_start_leaves_neither_folder_nor_process(tmp_path):
    toolchain, runs = made_up(tmp_path), tmp_path / "runs"
    toolchain.python.write_text("#!/bin/sh\nexec sleep 1\n")
    toolchain.python.chmod(0o700)
    starting = asyncio.create_task(WarmStart(toolchain, runs)._ensure_parent())
    await asyncio.sleep(0.2)
    assert len(list(runs.iterdir())) == 1
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert list(runs.iterdir()) == []
