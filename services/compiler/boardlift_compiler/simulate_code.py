"""Run compiled BPU code in the vendor's simulator and read what it writes."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from boardlift_servicekit.tool import ToolCommand, run_tool

from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.toolchain import Toolchain, tool_environment

Array = npt.NDArray[np.generic]
TRACE = re.compile(r"-+ ?Stack Trace|/\S+\[0x[0-9a-f]+\]|/\S+\(\S*\)\[0x[0-9a-f]+\]", re.IGNORECASE)
REPORT = "version:"
"""Begins what the simulator tells of itself when it aborts: versions, folders and its own command line."""
ABORTED = (134, -6)
"""Exit codes of a program that SIGABRT ended, through a shell and without one."""
DUMP = re.compile(r"hbdk_output(\d+)_(?:feature_)?(.*?)_?elem_int\.txt", re.DOTALL)


class SimulatorError(Exception):
    """The simulator refused or crashed; the message holds its last lines."""

    def __init__(self, message: str, *, aborted: bool = False) -> None:
        """Carry whether it ended itself by SIGABRT."""
        super().__init__(message)
        self.aborted = aborted


def parse_dump(text: str) -> npt.NDArray[np.int64]:
    """Parse one ``*_elem_int.txt``: comment lines start with ``#``, everything else is integers.

    Raises:
        SimulatorError: when it is no such file.
    """
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    try:
        return np.array(body.split(), dtype=np.int64)
    except ValueError as error:
        raise SimulatorError(f"the simulator's output is not a list of integers: {error}") from error


def find_dumps(files: Iterable[str], outputs: Sequence[str]) -> list[str]:
    """The simulator's file of integers per output: ``hbdk_outputINDEX_feature_NAME_elem_int.txt``.

    By name where every name is found once, as the index counts in the code's own order; else by index.

    Raises:
        SimulatorError: an output has no file.
    """
    dumps = {m[2]: (int(m[1]), f) for f in files if (m := DUMP.fullmatch(f))}
    names = [re.sub(r"[^\w.-]", "_", name) for name in outputs]
    if set(names) == set(dumps) and len(names) == len(set(names)):
        return [dumps[name][1] for name in names]
    by_index = dict(dumps.values())
    missing = next((name for index, name in enumerate(outputs) if index not in by_index), "")
    if missing:
        raise SimulatorError(f"hbdk-sim wrote no output {missing}")
    return [by_index[index] for index in range(len(outputs))]


def last_words(lines: Sequence[str]) -> str:
    """Return what the simulator said at last, without the report of itself, the stack trace and the folders in them."""
    own = next((i for i, line in enumerate(lines) if line.strip().startswith(REPORT)), len(lines))
    said = [line.strip() for line in lines[:own] if line.strip() and not TRACE.match(line.strip())]
    return " | ".join(said[-5:]) or "it crashed without a word, as it does on damaged code"


async def simulate_node(
    toolchain: Toolchain,
    folder: RunFolder,
    code: Path,
    node: str,
    inputs: list[tuple[Array, bool]],
    outputs: Sequence[str],
    timeout_s: float = 600.0,
) -> list[npt.NDArray[np.int64]]:
    """Run one BPU node on one sample.

    Args:
        toolchain: The installed toolchain.
        folder: Run folder; a subfolder is made and removed.
        code: File with the packed code.
        node: Name of the BPU node.
        inputs: Per input, in the node's own order: the array in native type and valid shape, and True when it is an
            image in nv12 form.
        outputs: Names of the outputs. The code may have them in another order than the node has.
        timeout_s: Time limit in seconds.

    Returns:
        Per name its integers in valid shape, flat.

    Raises:
        SimulatorError: when it fails or writes something else.
    """
    work = Path(tempfile.mkdtemp(prefix="sim-", dir=folder.path))
    try:
        names = []
        for index, (array, is_image) in enumerate(inputs):
            name = f"in{index}.{'yuv' if is_image else 'bin'}"
            np.ascontiguousarray(array).tofile(work / name)
            names.append(name)
        argv = [toolchain.program("hbdk-sim"), "-f", str(code), "-n", node, "-i", ",".join(names), "-o", "out"]
        (work / "out").mkdir()
        command = ToolCommand(argv, cwd=work, environment=tool_environment(toolchain.root, folder), timeout_s=timeout_s)
        result = await run_tool(command)
        if result.timed_out:
            raise SimulatorError(f"hbdk-sim did not finish one sample of {node} within {timeout_s:.0f} s")
        if result.exit_code != 0:
            text = f"hbdk-sim ended with {result.exit_code}: {last_words(result.last_lines)}"[:1000]
            raise SimulatorError(text, aborted=result.exit_code in ABORTED)
        files = find_dumps([f.name for f in (work / "out").iterdir()], outputs)
        return [parse_dump((work / "out" / f).read_text(encoding="utf-8", errors="replace")) for f in files]
    finally:
        shutil.rmtree(work, ignore_errors=True)
