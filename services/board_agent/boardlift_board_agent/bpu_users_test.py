"""Other users of the BPU are seen by the kernel's list and by open device files; our own tools never are."""

from pathlib import Path

import pytest

from boardlift_board_agent.bpu_users import foreign_bpu_users

AGENT, TOOL, OTHER, UNSEEN = 100, 101, 200, 9000


def process(root: Path, pid: int, parent: int, holds: bool) -> None:
    folder = root / "proc" / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a name) with) S {parent} 1 1 0 -1\n")
    (folder / "fd" / "3").symlink_to("/dev/bpu_core0" if holds else "/dev/null")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/bpu").touch()
    process(tmp_path, AGENT, 1, holds=False)
    process(tmp_path, TOOL, AGENT, holds=True)
    process(tmp_path, OTHER, 1, holds=False)
    return tmp_path


def list_users(root: Path, *pids: int) -> None:
    folder = root / "sys/devices/system/bpu/bpu0"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["*User via BPU Core(0)*", "user\t\tratio", *(f"{pid}\t\t0" for pid in pids)]
    (folder / "users").write_text("\n".join(lines) + "\n")


def test_our_own_tool_is_no_foreign_user(root: Path) -> None:
    list_users(root, TOOL)
    assert foreign_bpu_users(root, AGENT, running=True) == ()


def test_a_foreign_user_is_seen_while_we_run_and_while_we_do_not(root: Path) -> None:
    list_users(root, TOOL, OTHER)
    assert foreign_bpu_users(root, AGENT, running=True) == (OTHER,)
    assert foreign_bpu_users(root, AGENT) == (OTHER,)


def test_a_holder_of_the_device_file_is_seen_without_the_kernels_list(root: Path) -> None:
    process(root, 201, OTHER, holds=True)
    assert foreign_bpu_users(root, AGENT, running=True) == (201,)


def test_ids_of_another_namespace_count_only_while_no_tool_of_ours_can_be_meant(root: Path) -> None:
    list_users(root, UNSEEN)
    assert foreign_bpu_users(root, AGENT, running=True) == ()
    assert foreign_bpu_users(root, AGENT) == (UNSEEN,)


def test_nothing_to_see_is_not_nobody(tmp_path: Path) -> None:
    assert foreign_bpu_users(tmp_path, AGENT) is None
