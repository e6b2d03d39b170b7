"""Run one of our programs inside the toolchain's interpreter: request and answer are JSON files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from boardlift_servicekit.tool import ToolCommand, ToolResult, run_tool

from boardlift_compiler.count_oom_kills import count_oom_kills
from boardlift_compiler.explain_failure import RunEnd, StageFailure, explain_run, explain_text, make_failure
from boardlift_compiler.parse_log import LogFacts
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.run_mapper import Launcher
from boardlift_compiler.toolchain import Toolchain, tool_environment

Answer = Any
"""A program's JSON value; each program documents its own."""
TIMEOUT_S = 4 * 3600.0
"""Limit of a program that builds or tries many models, seconds."""
SIGNALS = 128
"""An exit code above it is 128 + the signal."""


def toolchain_side(name: str) -> Path:
    """Return one of our programs that run inside the toolchain's interpreter."""
    here = Path(__file__).resolve().parent
    inside = here / "toolchain_side" / name
    return inside if inside.exists() else here.parent / "toolchain_side" / name


async def run_vendor_program(
    toolchain: Toolchain,
    program: str,
    request: Mapping[str, object],
    folder: RunFolder,
    on_message: Callable[[Answer], None] = lambda message: None,
    launcher: Launcher = run_tool,
    timeout_s: float = TIMEOUT_S,
) -> Answer | StageFailure:
    """Run a program of ``toolchain_side`` and return its result, or why there is none.

    Args:
        toolchain: The installed toolchain.
        program: File name.
        request: What it shall do; paths in it lie in the run folder or the artifact store.
        folder: Run folder; the request is written to it.
        on_message: Called with every other line, such as ``{"progress": [1, 9]}``.
        launcher: How the program is started.
        timeout_s: Limit, seconds; the program is killed then.
    """
    path = folder.path / f"{program}.json"
    answer_path = folder.path / f"{program}.answer.json"
    path.write_text(json.dumps({**request, "answer": str(answer_path)}), encoding="utf-8")
    done = False
    errors: list[str] = []

    def on_line(source: str, text: str) -> None:
        if source != "stdout" or not text.startswith("{"):
            return
        try:
            answer = json.loads(text)
        except ValueError:
            return  # the vendor's runtime prints on the same stream
        nonlocal done
        if "result" in answer:
            done = True
        elif "error" in answer:
            errors.append(str(answer["error"]))
        else:
            on_message(answer)

    command = ToolCommand(
        [str(toolchain.python), str(toolchain_side(program)), str(path)],
        cwd=folder.path,
        environment=tool_environment(toolchain.root, folder),
        timeout_s=timeout_s,
    )
    kills_before = count_oom_kills()
    ended = await launcher(command, on_line)
    if done:
        return json.loads(answer_path.read_text(encoding="utf-8"))
    if ended.timed_out or ended.exit_code > SIGNALS:
        end = RunEnd(
            ended.exit_code,
            timed_out_s=timeout_s if ended.timed_out else 0.0,
            oom_killed=count_oom_kills() > kills_before,
        )
        return explain_run(end, LogFacts(tail=list(ended.last_lines))) or _refused(errors, ended)
    return _refused(errors, ended)


def _refused(errors: list[str], ended: ToolResult) -> StageFailure:
    """The program ended itself: it names why, or its last lines do."""
    text = errors[-1] if errors else "\n".join(ended.last_lines[-5:])
    known = explain_text(text, ended.exit_code)
    if known is not None and known.code in (
        "OUT_OF_MEMORY",
        "DISK_FULL",
    ):  # the machine's; other words are not hb_mapper's
        return known
    return make_failure("SIMULATION_FAILED", text.splitlines()[0][:200] if text else "", (text,), ended.exit_code)
