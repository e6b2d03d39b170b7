"""A board whose tool did not answer at start is asked again."""

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
