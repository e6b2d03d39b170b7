"""Which per-frame timer to use: none, a given command, or ours on the board's own Python runtime."""

from __future__ import annotations

from pathlib import Path

SYSTEM_PYTHON = "/usr/bin/python3"
"""The board's runtime packages live in the system Python only."""


def find_sampler(setting: tuple[str, ...]) -> tuple[str, ...]:
    """Command of the sampler.

    Args:
        setting: from the settings; ("auto",) means ours in the system's Python.

    Returns:
        Program and leading arguments; empty for none.
    """
    if setting != ("auto",):
        return setting
    return (SYSTEM_PYTHON, "-I", str(Path(__file__).resolve().parent / "board_side" / "sample_latency.py"))
