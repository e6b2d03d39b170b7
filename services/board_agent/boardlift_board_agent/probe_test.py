"""A board's files become facts; a missing file becomes an absent fact."""

from pathlib import Path

from boardlift_board_agent.parse_somstatus import parse_somstatus
from boardlift_board_agent.parse_somstatus_test import X5
from boardlift_board_agent.probe import probe_board, read_board

FILES = {
    "proc/device-tree/model": "D-Robotics RDK X5 V1.0\0",
    "sys/class/boardinfo/soc_name": "x5\n",
    "sys/class/socinfo/soc_uid": "0x0123456789\n",
    "etc/version": "3.5.0\nbuild 7\n",
    "proc/meminfo": "MemTotal: 4000000 kB\nMemAvailable: 3000000 kB\nCmaTotal: 391168 kB\nCmaFree: 300000 kB\n",
    "sys/devices/system/bpu/core_num": "1\n",
    "sys/devices/system/bpu/ratio": "12\n",
    "sys/class/hwmon/hwmon0/temp2_input": "61500\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "schedutil\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "1200000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "1800000\n",
    "sys/devices/system/cpu/cpufreq/boost": "1\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def test_facts_of_a_board(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    facts = probe_board(tmp_path)
    assert (facts.model, facts.soc, facts.os_version) == ("D-Robotics RDK X5 V1.0", "x5", "3.5.0")
    assert facts.memory_bytes == 4_096_000_000
    assert facts.serial_hash is not None and len(facts.serial_hash) == 16
    assert "0123456789" not in repr(facts)
    assert not facts.simulated
    assert facts.absent == ()


def test_what_is_missing_is_absent_never_guessed(tmp_path: Path) -> None:
    facts = probe_board(tmp_path)
    assert set(facts.absent) == {
        "model", "soc", "serial_hash", "os_version", "memory_bytes", "cma_bytes", "bpu_cores",
    }  # fmt: skip
    reading = read_board(tmp_path, tmp_path)
    assert reading.bpu_c is None
    assert "bpu_c" in reading.absent
    assert "disk_free_bytes" not in reading.absent


def test_reading_with_boost(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    reading = read_board(tmp_path, tmp_path)
    assert (reading.bpu_c, reading.bpu_ratio, reading.cpu_mhz, reading.boost) == (61.5, 12.0, 1200.0, True)
    assert reading.governor == "schedutil"


def test_the_governors_of_all_policies_and_of_the_bpu_are_read(tmp_path: Path) -> None:
    policy4 = {"sys/devices/system/cpu/cpufreq/policy4/scaling_governor": "performance\n"}
    write(tmp_path, {**FILES, **policy4, "sys/class/devfreq/3a000000.bpu/governor": "simple_ondemand\n"})
    reading = read_board(tmp_path, tmp_path)
    assert (reading.governor, reading.bpu_governor) == ("performance,schedutil", "simple_ondemand")


def test_somstatus_fills_what_the_files_lack(tmp_path: Path) -> None:
    reading = read_board(tmp_path, tmp_path, parse_somstatus(X5))
    assert (reading.bpu_c, reading.bpu_mhz, reading.bpu_ratio) == (62.5, 1000.0, 37.0)


def test_garbage_in_a_sensor_is_absent(tmp_path: Path) -> None:
    write(tmp_path, {"sys/class/hwmon/hwmon0/temp2_input": "n/a"})
    assert read_board(tmp_path, tmp_path).bpu_c is None
