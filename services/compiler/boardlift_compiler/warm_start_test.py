"""What the warm start does when its parent dies at the worst moment; the rest is in `run_mapper_test.py`."""

import asyncio
import contextlib
import socket

from boardlift_servicekit.tool import ToolCommand

from boardlift_compiler.warm_start import WarmStart, _Parent, _read_messages


async def test_a_parent_that_dies_before_it_forks_ends_the_run_at_once(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    process = await asyncio.create_subprocess_exec("sleep", "60")
    parent = _Parent(process, contextlib.nullcontext(), ours)
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
