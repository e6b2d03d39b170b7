"""What the board is and how it is, read from its own files below a root folder. What a board lacks is said absent.

The root is `/` on a board and a folder of small files for a simulated one. Nothing is guessed: a value that can not be
read is None and its name stands in `absent`.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from boardlift_board_agent.parse_somstatus import SomStatus

_CPUS = "sys/devices/system/cpu/cpufreq"
_CPU = f"{_CPUS}/policy0"
_BPU = "sys/devices/system/bpu"
_SERIAL_SOURCES = ("sys/class/socinfo/soc_uid", "proc/device-tree/serial-number")
BPU_CLOCKS = ("sys/class/devfreq/bpu", "sys/class/devfreq/3a000000.bpu")
"""Folders of the BPU's clock below the root; the first that is there counts."""
_BOOSTED_KHZ = 1_500_000
_MAX_BYTES = 65536


@dataclass(frozen=True)
class BoardFacts:
    """What does not change while the agent runs."""

    model: str | None
    """Board as the device tree names it."""
    soc: str | None
    serial_hash: str | None
    """SHA-256 of the serial number, 16 digits: tells boards apart, gives nothing away."""
    os_version: str | None
    memory_bytes: int | None
    cma_bytes: int | None
    bpu_cores: int | None
    simulated: bool
    """The device tree says so."""
    absent: tuple[str, ...] = ()
    """Names of the facts that could not be read."""


@dataclass(frozen=True)
class BoardReading:
    """How the board is at one moment."""

    cpu_c: float | None = None
    bpu_c: float | None = None
    ddr_c: float | None = None
    cpu_mhz: float | None = None
    cpu_max_mhz: float | None = None
    bpu_mhz: float | None = None
    bpu_max_mhz: float | None = None
    bpu_ratio: float | None = None
    """Load of the BPU in percent."""
    governor: str | None = None
    """Of the CPU; several with commas when its policies differ."""
    bpu_governor: str | None = None
    boost: bool | None = None
    """CPU above its normal top clock allowed."""
    load1: float | None = None
    """Processes running or waiting, one minute mean."""
    memory_free_bytes: int | None = None
    cma_free_bytes: int | None = None
    disk_free_bytes: int | None = None
    absent: tuple[str, ...] = field(default=())


def probe_board(root: Path) -> BoardFacts:
    """Reads what the board is.

    Args:
        root: `/` or a simulated board's folder.
    """
    model = _text(root / "proc/device-tree/model")
    serial = next((s for s in (_text(root / p) for p in _SERIAL_SOURCES) if s), None)
    cores = _number(root / _BPU / "core_num")
    memory = _meminfo(root)
    facts = {
        "model": model,
        "soc": _text(root / "sys/class/boardinfo/soc_name"),
        "serial_hash": hashlib.sha256(serial.encode()).hexdigest()[:16] if serial else None,
        "os_version": (_text(root / "etc/version") or "").splitlines()[0] if _text(root / "etc/version") else None,
        "memory_bytes": memory.get("MemTotal"),
        "cma_bytes": memory.get("CmaTotal"),
        "bpu_cores": int(cores) if cores is not None else None,
    }
    absent = tuple(name for name, value in facts.items() if value is None)
    return BoardFacts(simulated="SIMULATED" in (model or ""), absent=absent, **facts)  # type: ignore[arg-type]


def read_board(root: Path, work: Path, som: SomStatus | None = None) -> BoardReading:
    """Reads how the board is now.

    Args:
        root: `/` or a simulated board's folder.
        work: folder whose disk is looked at.
        som: report of `hrut_somstatus`, which fills what the files lack.
    """
    clock = next((root / p for p in BPU_CLOCKS if (root / p).is_dir()), root / BPU_CLOCKS[0])
    memory = _meminfo(root)
    boost, load = _number(root / "sys/devices/system/cpu/cpufreq/boost"), _text(root / "proc/loadavg")
    maximum = _scaled(root / _CPU / "scaling_max_freq", 1e-3)
    ratio = _number(root / _BPU / "ratio")
    bpu = next((c for c in som.clocks if c.name.startswith("bpu")), None) if som else None
    facts = {
        "cpu_c": _first(_scaled(root / "sys/class/hwmon/hwmon0/temp3_input", 1e-3), _heat(som, "cpu")),
        "bpu_c": _first(_scaled(root / "sys/class/hwmon/hwmon0/temp2_input", 1e-3), _heat(som, "bpu")),
        "ddr_c": _first(_scaled(root / "sys/class/hwmon/hwmon0/temp1_input", 1e-3), _heat(som, "ddr")),
        "cpu_mhz": _scaled(root / _CPU / "scaling_cur_freq", 1e-3),
        "cpu_max_mhz": maximum,
        "bpu_mhz": _first(_scaled(clock / "cur_freq", 1e-6), bpu.current_mhz if bpu else None),
        "bpu_max_mhz": _first(_scaled(clock / "max_freq", 1e-6), bpu.maximum_mhz if bpu else None),
        "bpu_ratio": _first(ratio, max(som.bpu_ratio.values(), default=None) if som else None),
        "governor": _governors(root),
        "bpu_governor": _text(clock / "governor"),
        "boost": None if boost is None else bool(boost) or (maximum or 0) * 1000 > _BOOSTED_KHZ,
        "load1": float(load.split()[0]) if load else None,
        "memory_free_bytes": memory.get("MemAvailable"),
        "cma_free_bytes": memory.get("CmaFree"),
        "disk_free_bytes": shutil.disk_usage(work).free if work.is_dir() else None,
    }
    absent = tuple(name for name, value in facts.items() if value is None)
    return BoardReading(absent=absent, **facts)  # type: ignore[arg-type]


def _heat(som: SomStatus | None, part: str) -> float | None:
    return som.temperature(part) if som else None


def _governors(root: Path) -> str | None:
    found = {_text(path) for path in (root / _CPUS).glob("policy*/scaling_governor")}
    return ",".join(sorted(name for name in found if name)) or None


def _first(*values: float | None) -> float | None:
    return next((v for v in values if v is not None), None)


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).rstrip(b"\0").decode(errors="replace").strip()
    except OSError:
        return None
    return text or None


def _number(path: Path) -> float | None:
    text = _text(path)
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _scaled(path: Path, factor: float) -> float | None:
    value = _number(path)
    return None if value is None else value * factor


def _meminfo(root: Path) -> dict[str, int]:
    values = {}
    for line in (_text(root / "proc/meminfo") or "").splitlines():
        key, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            values[key] = int(words[0]) * 1024
    return values
