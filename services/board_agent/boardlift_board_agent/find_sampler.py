"""Which per-frame timer to use: a given command, the simulated board's, ours on the board's Python runtime, or none."""

from __future__ import annotations

import shutil
from pathlib import Path

SYSTEM_PYTHON = "/usr/bin/python3"
"""The board's runtime packages live in the system Python only."""
_PACKAGES = ("hbm_runtime", "hobot_dnn")
_PLACES = (
    "usr/lib/python3/dist-packages",
    "usr/local/lib/python3.10/dist-packages",
    "usr/lib/python3.10/dist-packages",
)
_STAND_IN = {"boardlift-hrt-model-exec": "boardlift-sample-latency"}


def find_sampler(setting: tuple[str, ...], tool: str, search_path: str, root: Path) -> tuple[str, ...]:
    """Command of the sampler.

    Args:
        setting: from the settings; ("auto",) looks for one, ("none",) or nothing does without.
        tool: the vendor tool, by name or absolute path.
        search_path: PATH of the board's programs.
        root: `/`, or a simulated board's folder.

    Returns:
        Program and leading arguments; empty for none.
    """
    if setting in ((), ("none",)):
        return ()
    if setting != ("auto",):
        return setting
    path = Path(shutil.which(tool, path=search_path) or tool)
    stand_in = _STAND_IN.get(path.name)
    if stand_in:
        beside = path.with_name(stand_in)
        return (str(beside),) if beside.is_file() else ()
    if any(list((root / place).glob(f"{package}*")) for place in _PLACES for package in _PACKAGES):
        return (SYSTEM_PYTHON, "-I", str(Path(__file__).resolve().parent / "board_side" / "sample_latency.py"))
    return ()
