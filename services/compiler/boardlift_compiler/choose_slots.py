"""Choose how many runs go at the same time; pure but for asking the machine."""

from __future__ import annotations

import math
import os
from pathlib import Path

BYTES_PER_RUN = 1_500_000_000
"""A run of a 640x640 detector with 50 samples takes about 1 GB; a policy a quarter of that."""


def choose_slots(asked: int, cores: int = 0, memory_bytes: int = 0) -> int:
    """Return the number of slots: what is asked, else one per core as far as memory reaches.

    One run per core was measured to beat one run with all cores: most of a small run is single-threaded.
    """
    if asked > 0:
        return asked
    cores = cores or available_cores()
    memory = memory_bytes or available_memory()
    return max(1, min(cores, memory // BYTES_PER_RUN))


def available_cores(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the cores this process may use: those it may run on, or its container's quota when that is lower."""
    cores = len(os.sched_getaffinity(0))
    try:
        if (group / "cpu.max").is_file():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu/cpu.cfs_quota_us").read_text()
            period = (group / "cpu/cpu.cfs_period_us").read_text()
        limit = math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # no control group, or "max": no quota
        return cores
    return max(1, min(cores, limit)) if limit > 0 else cores


def available_memory() -> int:
    """Return the machine's available memory in bytes, or the container's limit when that is lower."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        file = Path(path)
        if file.is_file() and (text := file.read_text().strip()).isdigit():
            found.append(int(text))
    return min(found)
