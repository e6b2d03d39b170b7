from boardlift_compiler.history import History
from boardlift_compiler.track_progress import RunSize


def test_a_run_on_a_full_disk_is_remembered_and_none_the_worse(tmp_path):
    size = RunSize(**dict.fromkeys(RunSize.__dataclass_fields__, 1))
    (tmp_path / "history.tmp").symlink_to("/dev/full")
    history = History(tmp_path / "history.jsonl")
    history.add(size, {"compile": 2.0})
    assert len(history.runs) == 1 and not (tmp_path / "history.jsonl").exists()
    history.add(size, {"compile": 3.0})  # there is room again
    assert [run.step_seconds for run in History(tmp_path / "history.jsonl").runs] == [
        {"compile": 2.0},
        {"compile": 3.0},
    ]
