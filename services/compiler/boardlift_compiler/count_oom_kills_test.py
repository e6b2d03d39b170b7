from boardlift_compiler.count_oom_kills import count_oom_kills


def test_all_counters_that_can_be_read_are_added(tmp_path):
    machine, group = tmp_path / "vmstat", tmp_path / "memory.events"
    machine.write_text("nr_free_pages 7\noom_kill 2\noom_kill_disable 0\n")
    group.write_text("low 0\noom 9\noom_kill 3\n")
    assert count_oom_kills((machine, group, tmp_path / "nothing")) == 5
    assert count_oom_kills((tmp_path / "nothing",)) == 0


def test_the_real_counter_is_a_number():
    assert count_oom_kills() >= 0
