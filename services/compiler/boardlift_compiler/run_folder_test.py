import subprocess
import sys

from boardlift_compiler.run_folder import run_folder, sweep
from boardlift_compiler.scrub_paths import Scrubber


def test_nothing_is_left_whatever_happens(tmp_path):
    try:
        with run_folder(tmp_path) as folder:
            (folder.temporary / "x").write_text("x")
            assert (folder.path.stat().st_mode & 0o777) == 0o700
            raise KeyError
    except KeyError:
        pass
    assert list(tmp_path.iterdir()) == []


def test_names_have_one_length(tmp_path):
    with run_folder(tmp_path) as one, run_folder(tmp_path) as two:
        assert len(str(one.path)) == len(str(two.path))
        assert one.path != two.path


def test_sweep_takes_the_dead_and_leaves_the_living(tmp_path):
    code = (
        "import os,sys; from pathlib import Path; from boardlift_compiler.run_folder import run_folder\n"
        "with run_folder(Path(sys.argv[1])): os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (tmp_path / "boardlift-run-foreign").mkdir()
    with run_folder(tmp_path) as alive:
        assert len(sweep(tmp_path)) == 1
        assert {p.name for p in tmp_path.iterdir()} == {alive.path.name, "boardlift-run-foreign"}


def test_a_link_is_not_followed(tmp_path):
    target = tmp_path / "precious"
    target.mkdir()
    (target / "lock").write_text("")
    (tmp_path / "boardlift-run-link").symlink_to(target)
    sweep(tmp_path)
    assert target.exists()


def test_scrubbing(tmp_path):
    scrubber = Scrubber(tmp_path / "run", tmp_path / "tool")
    text = f"in {tmp_path}/run/t/tmpab12cd_9/x.hbir by {tmp_path}/tool/lib/a.py"
    assert scrubber.line(text) == "in {run}/t/tmp/x.hbir by {toolchain}/lib/a.py"
