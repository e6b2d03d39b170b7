from __future__ import annotations

import os

from boardlift_compiler.explore.remember import Memory, digest_of


def test_what_is_kept_comes_back_and_what_is_damaged_is_forgotten(tmp_path):
    memory = Memory(tmp_path / "m")
    assert memory.recall("a") is None
    memory.keep("a", {"x": [1, 2.5, float("inf")]})
    assert Memory(tmp_path / "m").recall("a") == {"x": [1, 2.5, float("inf")]}
    (tmp_path / "m/a.json").write_text("{")
    assert memory.recall("a") is None and not (tmp_path / "m/a.json").exists()


def test_a_folder_that_takes_nothing_costs_time_only(tmp_path):
    memory = Memory(tmp_path / "m")
    (tmp_path / "m").rmdir()
    (tmp_path / "m").touch()
    memory.keep("a", 1)
    assert not (tmp_path / "m").is_dir()


def test_parts_of_a_digest_do_not_run_together():
    assert digest_of("ab", "c") != digest_of("a", "bc") != digest_of(b"a", "bc", "")
    assert digest_of("ab") == digest_of(b"ab")


def test_another_version_does_not_find_it(tmp_path):
    Memory(tmp_path, "1").keep("a", 1)
    assert Memory(tmp_path, "1").recall("a") == 1 and Memory(tmp_path, "2").recall("a") is None


def test_what_was_longest_unused_is_forgotten(tmp_path):
    memory = Memory(tmp_path, most=8)
    for number in range(8):
        memory.keep(f"k{number}", number)
        os.utime(tmp_path / f"k{number}.json", (number, number))
    assert memory.recall("k0") == 0
    memory.keep("new", 9)
    left = {path.stem for path in tmp_path.glob("*.json")}
    assert left == {"k0", "k4", "k5", "k6", "k7", "new"}
