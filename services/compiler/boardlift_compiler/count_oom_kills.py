"""Ask the kernel how many processes it has killed for want of memory: that tells such an end from any other kill."""

from __future__ import annotations

from pathlib import Path

COUNTERS = (
    Path("/proc/vmstat"),
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)
"""The machine's own counter, and those of the control group this process sees as its root (versions 2 and 1)."""


def count_oom_kills(counters: tuple[Path, ...] = COUNTERS) -> int:
    """Return the sum of the kernel's counters; it rises with every such kill, and 0 means that none can be read."""
    total = 0
    for path in counters:
        try:
            lines = path.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return total
