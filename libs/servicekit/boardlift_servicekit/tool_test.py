import asyncio
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from boardlift.errors import PreconditionError

from boardlift_servicekit.tool import ToolCommand, run_tool

PATH = {"PATH": "/usr/bin:/bin"}


def alive(marker):
    done = subprocess.run(["pgrep", "-f", marker], capture_output=True, text=True, check=False)
    return [p for p in done.stdout.split() if int(p) != os.getpid()]


async def test_output_and_exit_code(tmp_path):
    lines = []
    script = "echo one; printf 'two\\rthree\\n' >&2; echo $SECRET; exit 7"
    command = ToolCommand(["sh", "-c", script], tmp_path, PATH, log_path=tmp_path / "log")
    os.environ["SECRET"] = "leaks"
    result = await run_tool(command, lambda source, text: lines.append((source, text)))
    assert result.exit_code == 7
    assert result.signal == 0
    assert sorted(lines) == [("stderr", "three"), ("stderr", "two"), ("stdout", "one")]
    assert b"one" in (tmp_path / "log").read_bytes()


async def test_signal_is_told_apart(tmp_path):
    result = await run_tool(ToolCommand(["sh", "-c", "kill -SEGV $$"], tmp_path, PATH))
    assert (result.exit_code, result.signal) == (139, 11)


async def test_missing_program(tmp_path):
    with pytest.raises(PreconditionError) as caught:
        await run_tool(ToolCommand(["no-such-tool-here"], tmp_path, PATH))
    assert caught.value.reason == "TOOL_MISSING"


async def test_a_tool_that_can_not_be_started_leaves_no_descriptor_open(tmp_path):
    await run_tool(ToolCommand(["sh", "-c", "exit 0"], tmp_path, PATH))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for command in (ToolCommand(["no-such-program"], tmp_path, PATH), ToolCommand(["sh"], tmp_path / "absent", PATH)):
        with pytest.raises((PreconditionError, OSError)):
            await run_tool(command)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_deadline_stops_a_tool_that_ignores_term_and_its_children(tmp_path):
    marker = f"boardlift-tool-test-{os.getpid()}-a"
    script = f"trap '' TERM; (trap '' TERM; exec -a {marker} sleep 60) & wait"
    start = time.monotonic()
    result = await run_tool(ToolCommand(["bash", "-c", script], tmp_path, PATH, timeout_s=0.5, kill_after_s=0.5))
    assert result.timed_out
    assert time.monotonic() - start < 20
    assert not alive(marker)


async def test_silence_counts_as_hanging(tmp_path):
    result = await run_tool(ToolCommand(["sleep", "60"], tmp_path, PATH, silence_s=0.5))
    assert result.silent
    assert not result.timed_out


async def test_cancel_leaves_nothing(tmp_path):
    marker = f"boardlift-tool-test-{os.getpid()}-b"
    task = asyncio.create_task(
        run_tool(ToolCommand(["bash", "-c", f"(exec -a {marker} sleep 60) & wait"], tmp_path, PATH))
    )
    while not alive(marker):
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(marker)


async def test_orphans_of_a_finished_tool_are_killed(tmp_path):
    marker = f"boardlift-tool-test-{os.getpid()}-c"
    await run_tool(ToolCommand(["bash", "-c", f"(exec -a {marker} sleep 60) & exit 0"], tmp_path, PATH))
    for _ in range(100):
        if not alive(marker):
            break
        await asyncio.sleep(0.05)
    assert not alive(marker)


async def test_tool_dies_when_its_service_is_killed(tmp_path):
    marker = f"boardlift-tool-test-{os.getpid()}-d"
    program = textwrap.dedent(f"""
        import asyncio, pathlib
        from boardlift_servicekit.tool import ToolCommand, run_tool
        asyncio.run(run_tool(ToolCommand(
            ["bash", "-c", "(exec -a {marker} sleep 60) & wait"], pathlib.Path("."), {{"PATH": "/usr/bin:/bin"}})))
    """)
    service = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    while not (alive(marker + "$") or alive(marker + " 60")):
        await asyncio.sleep(0.05)
    service.kill()
    service.wait()
    for _ in range(200):
        if not alive(marker + " 60"):
            break
        await asyncio.sleep(0.05)
    assert not alive(marker + " 60")


async def test_file_size_limit(tmp_path):
    script = "head -c 100000 /dev/zero > out"
    result = await run_tool(ToolCommand(["sh", "-c", script], tmp_path, PATH, file_bytes=1000))
    assert result.exit_code != 0
    assert (tmp_path / "out").stat().st_size <= 1000
