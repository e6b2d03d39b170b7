from boardlift_compiler.history import History
from boardlift_compiler.track_progress import RunSize


def test_a_run_whose_time_cannot_be_written_is_remembered_and_none_the_worse(tmp_path):
    size = RunSize(**dict.fromkeys(RunSize.__dataclass_fields__, 1))
    path = tmp_path / "state" / "history.jsonl"
    (tmp_path / "state").touch()  # no folder
    history = History(path)
    history.add(size, {"compile": 2.0})
    assert len(history.runs) == 1 and not path.exists()
    (tmp_path / "state").unlink()
    history.add(size, {"compile": 3.0})
    assert [run.step_seconds for run in History(path).runs] == [
        {"compile": 2.0},
        {"compile": 3.0},
    ]
