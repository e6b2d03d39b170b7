"""Run one of our programs inside the toolchain's interpreter: request and answer are JSON files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from boardlift_servicekit.tool import ToolCommand, run_tool

from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.run_mapper import Launcher
from boardlift_compiler.run_simulation import toolchain_side
from boardlift_compiler.toolchain import Toolchain, tool_environment

Answer = Any
"""A program's JSON value; each program documents its own."""
TIMEOUT_S = 4 * 3600.0


async def run_vendor_program(
    toolchain: Toolchain,
    program: str,
    request: Mapping[str, object],
    folder: RunFolder,
    on_message: Callable[[Answer], None] = lambda message: None,
    launcher: Launcher = run_tool,
) -> Answer | StageFailure:
    """Run a program of ``toolchain_side`` and return its result, or why there is none.

    Args:
        toolchain: The installed toolchain.
        program: File name.
        request: What it shall do; paths in it lie in the run folder or the artifact store.
        folder: Run folder; the request is written to it.
        on_message: Called with every other line, such as ``{"progress": [1, 9]}``.
        launcher: How the program is started.
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
        timeout_s=TIMEOUT_S,
    )
    ended = await launcher(command, on_line)
    if done:
        return json.loads(answer_path.read_text(encoding="utf-8"))
    text = errors[-1] if errors else "\n".join(ended.last_lines[-5:])
    return make_failure("SIMULATION_FAILED", text.splitlines()[0][:200] if text else "", (text,), ended.exit_code)
