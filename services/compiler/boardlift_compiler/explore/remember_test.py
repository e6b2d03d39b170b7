from __future__ import annotations

from boardlift_compiler.explore.remember import Memory, digest_of


def test_what_is_kept_comes_back_and_what_is_damaged_is_forgotten(tmp_path):
    memory = Memory(tmp_path / "m")
    assert memory.recall("a") is None
    memory.keep("a", {"x": [1, 2.5, float("inf")]})
    assert Memory(tmp_path / "m").recall("a") == {"x": [1, 2.5, float("inf")]}
    (tmp_path / "m/a.json").write_text("{")
    assert memory.recall("a") is None and not (tmp_path / "m/a.json").exists()


def test_parts_of_a_digest_do_not_run_together():
    assert digest_of("ab", "c") != digest_of("a", "bc") != digest_of(b"a", "bc", "")
    assert digest_of("ab") == digest_of(b"ab")
