"""`hrut_somstatus` -> temperatures, clocks, BPU load. Pure; X5, X3 and S series layouts.

Rows may start with a literal `-e` that older shells print. Clocks are MHz on X5 (the header says `min(M)`), kHz for CPU
policies and Hz for the BPU elsewhere; all come out in MHz.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"^(?:-e)?\s*(temperature|voltage|cpu frequency|bpu status information|ddr frequency information|"
                    r"GPU .*frequency information)-+>", re.IGNORECASE)  # fmt: skip
_TEMPERATURE = re.compile(r"^(?:-e)?\s*(\w+)\s*:\s*(-?[\d.]+)\s*\(C\)")
_ROW = re.compile(r"^(?:-e)?\s*([\w-]+):\s+([\d\s]+)$")


@dataclass(frozen=True)
class Clock:
    """One clock in MHz; minimum and maximum may be absent."""

    name: str
    current_mhz: float
    minimum_mhz: float | None = None
    maximum_mhz: float | None = None


@dataclass(frozen=True)
class SomStatus:
    """One report."""

    temperatures_c: dict[str, float]
    """Sensor name in lower case -> degrees Celsius."""
    clocks: tuple[Clock, ...]
    """CPU, BPU, DDR and GPU clocks."""
    bpu_ratio: dict[str, float]
    """BPU core -> load in percent."""

    def temperature(self, part: str) -> float | None:
        """Hottest sensor whose name holds `part`; None when there is none."""
        return max((v for k, v in self.temperatures_c.items() if part in k), default=None)


def parse_somstatus(text: str) -> SomStatus:
    """Reads the first report in the text; unknown rows are passed over."""
    temperatures: dict[str, float] = {}
    clocks: list[Clock] = []
    ratio: dict[str, float] = {}
    block, mega = "", False
    for line in text.splitlines():
        start = _BLOCK.match(line.strip())
        if start:
            block, mega = start[1].lower(), False
            continue
        if "min" in line or "ratio" in line:
            mega = "(M)" in line
            continue
        heat = _TEMPERATURE.match(line.strip())
        if heat and block == "temperature":
            temperatures.setdefault(heat[1].lower(), float(heat[2]))
            continue
        row = _ROW.match(line.strip())
        if row and block:
            _read_row(block, mega, row[1], [float(v) for v in row[2].split()], clocks, ratio)
    return SomStatus(temperatures, tuple(clocks), ratio)


def _read_row(
    block: str, mega: bool, name: str, values: list[float], clocks: list[Clock], ratio: dict[str, float]
) -> None:
    if block.startswith("bpu"):
        if name in ratio or not values:
            return
        ratio[name] = values[-1]
        values = values[:-1]
    if len(values) < 3 or any(clock.name == name for clock in clocks):
        return
    factor = 1.0 if mega else 1e-6 if block.startswith("bpu") else 1e-3
    clocks.append(Clock(name, values[1] * factor, values[0] * factor, values[2] * factor))
