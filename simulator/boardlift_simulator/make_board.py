"""`boardlift-simulated-board FOLDER`: writes the files a board's probe reads, as a small root folder.

Sensors, clocks and versions are those of a healthy RDK X5; BOARDLIFT_SIMULATOR_SICK changes them (`hot`,
`throttled`, `shared`). The device tree says "SIMULATED", which is how a probe knows.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from .play_sick import read_sickness

_OTHER = 4711
"""Id of the other process."""
_MODEL = "D-Robotics RDK X5 V1.0 (SIMULATED by boardlift)"


def board_files(
    serial: str,
    hot: bool = False,
    throttled: bool = False,
    governor: str = "performance",
    bpu_ratio: int = 0,
    shared: bool = False,
) -> dict[str, str]:
    """Relative path -> content of the simulated board's files.

    Args:
        serial: the SoC's unique id to present.
        hot: sensors above the passive trip point.
        throttled: clocks below their maximum.
        governor: CPU governor.
        bpu_ratio: load of the BPU by others, percent.
        shared: another process uses the BPU.
    """
    milli = 97_500 if hot else 52_000
    clock = 600_000 if throttled or hot else 1_500_000
    files = {
        "proc/device-tree/model": _MODEL + "\0",
        "proc/meminfo": "MemTotal:        4053116 kB\nMemFree:         2213000 kB\nMemAvailable:    3013000 kB\n"
        "CmaTotal:         391168 kB\nCmaFree:          371200 kB\n",
        "proc/loadavg": "0.10 0.08 0.05 1/180 1234\n",
        "sys/class/boardinfo/soc_name": "x5\n",
        "sys/class/socinfo/board_id": "302\n",
        "sys/class/socinfo/soc_uid": serial + "\n",
        "etc/version": "3.5.0\n",
        "sys/class/hwmon/hwmon0/temp1_input": f"{milli}\n",
        "sys/class/hwmon/hwmon0/temp2_input": f"{milli + 500}\n",
        "sys/class/hwmon/hwmon0/temp3_input": f"{milli + 300}\n",
        "sys/devices/system/cpu/cpufreq/boost": "0\n",
        "sys/devices/system/bpu/core_num": "1\n",
        "sys/devices/system/bpu/bpu0/ratio": f"{bpu_ratio}\n",
        "sys/devices/system/bpu/ratio": f"{bpu_ratio}\n",
    }
    users = f"{_OTHER}\t\t{bpu_ratio}\n" if shared else ""
    files["sys/devices/system/bpu/bpu0/users"] = f"*User via BPU Core(0)*\nuser\t\tratio\n{users}"
    if shared:
        files[f"proc/{_OTHER}/stat"] = f"{_OTHER} (another) S 1 1 1 0 -1\n"
    for name, value in (
        ("scaling_governor", governor),
        ("scaling_available_governors", "conservative ondemand userspace powersave performance schedutil"),
        ("scaling_cur_freq", str(clock)),
        ("scaling_max_freq", "1500000"),
        ("scaling_min_freq", "300000"),
    ):
        files[f"sys/devices/system/cpu/cpufreq/policy0/{name}"] = value + "\n"
    bpu = 500_000_000 if throttled or hot else 1_000_000_000
    files["sys/class/devfreq/bpu/cur_freq"] = f"{bpu}\n"
    files["sys/class/devfreq/bpu/max_freq"] = "1000000000\n"
    files["sys/class/devfreq/bpu/governor"] = "performance\n"
    files["sys/class/devfreq/bpu/available_governors"] = "simple_ondemand powersave performance userspace\n"
    return files


def write_board(folder: Path, files: dict[str, str]) -> None:
    """Writes the files below a folder, each by rename so that a reader never sees half of one."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(content)
        part.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Console script."""
    parser = argparse.ArgumentParser(prog="boardlift-simulated-board", description="Writes a simulated board's files.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--serial", default="0xSIMULATED0000", help="unique id to present")
    parser.add_argument("--governor", default="performance")
    parser.add_argument("--bpu-ratio", type=int, default=0, help="load of the BPU by others, percent")
    options = parser.parse_args(arguments)
    sick = read_sickness(dict(os.environ))
    write_board(
        options.folder,
        board_files(
            options.serial,
            sick.has("hot"),
            sick.has("throttled"),
            options.governor,
            options.bpu_ratio,
            sick.has("shared"),
        ),
    )
    print(f"SIMULATED board files below {options.folder}")
    return 0
