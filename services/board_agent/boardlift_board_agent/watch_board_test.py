"""A board whose tool did not answer at start is asked again; one that can't be watched is not measured."""

import asyncio

import pytest

from boardlift_board_agent import watch_board
from boardlift_board_agent.board_tool import BoardTool
from boardlift_board_agent.health import HealthLimits
from boardlift_board_agent.watch_board import BoardWatch

TOOL = '#!/bin/sh\necho "hrt_model_exec version 1.24.5"\n'


async def test_a_tool_that_comes_later_brings_the_board_back(tmp_path, monkeypatch):
    monkeypatch.setattr(watch_board, "_ASK_AGAIN_S", 0.0)
    program, work = tmp_path / "hrt_model_exec", tmp_path / "work"
    work.mkdir()
    watch = BoardWatch(tmp_path, work, BoardTool(str(program), "/usr/bin:/bin"), HealthLimits())
    await watch.start()
    assert "RUNTIME_MISSING" in {fact.code for fact in (await watch.look()).facts}
    program.write_text(TOOL)
    program.chmod(0o755)
    assert "RUNTIME_MISSING" not in {fact.code for fact in (await watch.look()).facts}


async def test_a_measurement_during_which_the_board_could_not_be_watched_says_so(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    watch = BoardWatch(tmp_path, tmp_path / "work", BoardTool("absent", "/usr/bin:/bin"), HealthLimits())
    whole, looked = [], asyncio.Event()
    async with watch.during(whole, every_s=0.01):
        while len(whole) < 2:
            await asyncio.sleep(0.01)

    async def look(running):
        looked.set()
        raise OSError("the sensors are gone")

    monkeypatch.setattr(watch, "look", look)
    with pytest.raises(OSError, match="sensors"):
        async with watch.during([]):
            await looked.wait()
    with pytest.raises(ValueError, match="of its own"):  # which goes first
        async with watch.during([]):
            await asyncio.sleep(0.01)
            raise ValueError("a fault of its own")
