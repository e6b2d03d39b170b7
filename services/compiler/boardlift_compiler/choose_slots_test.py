import os

import pytest

from boardlift_compiler.choose_slots import available_cores, choose_slots

HERE = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("asked", "cores", "memory", "slots"),
    [(0, 2, 16 << 30, 2), (0, 64, 4 << 30, 2), (0, 1, 1 << 30, 1), (0, 8, 100, 1), (5, 1, 100, 5)],
)
def test_slots(asked, cores, memory, slots):
    assert choose_slots(asked, cores, memory) == slots


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, HERE),
        ({"cpu.max": "99900000 100000\n"}, HERE),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, HERE),
        ({}, HERE),
    ],
    ids=str,
)
def test_a_containers_quota_counts_where_it_is_lower(tmp_path, files, cores):
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert available_cores(tmp_path) == cores
