from __future__ import annotations

import pytest
from boardlift.errors import PreconditionError
from boardlift.v1 import job_pb2

from boardlift_orchestrator.check_boards import check_boards, needs_boards
from boardlift_orchestrator.schedule import BoardView


def spec(labels: dict[str, str] | None = None, governor: str = "", board: str = "") -> job_pb2.JobSpec:
    made = job_pb2.JobSpec(target="t", board=job_pb2.BoardSelector(id=board, labels=labels or {}))
    made.perf.governor = governor
    return made


def view(name: str, *, gone: bool = False, can: tuple[str, ...] = (), governor: str = "") -> BoardView:
    return BoardView(name, "t", {"place": "shelf"}, online=not gone, gone=gone, capabilities=can, governor=governor)


def reason(job: job_pb2.JobSpec, *boards: BoardView) -> str:
    try:
        check_boards(job, boards)
    except PreconditionError as error:
        assert error.remedy
        return error.reason
    return ""


SHELF = {"place": "shelf"}


@pytest.mark.parametrize(
    ("boards", "expected"),
    [
        ((), ""),  # one with these labels may register yet
        ((view("a"), view("b", gone=True)), ""),
        ((view("a", gone=True), view("b", gone=True)), "BOARDS_LONG_GONE"),
    ],
)
def test_labels_of_boards_that_are_all_long_gone_are_refused(boards: tuple[BoardView, ...], expected: str) -> None:
    assert reason(spec(SHELF), *boards) == expected
    assert reason(spec({"place": "elsewhere"}), *boards) == ""


def test_a_governor_is_refused_unless_a_board_that_the_job_may_go_to_permits_it_or_has_it() -> None:
    allowing, plain = view("a", can=("governor",)), view("b")
    asked = spec(governor="performance")
    assert reason(asked, allowing, plain) == ""
    assert reason(asked) == reason(asked, plain) == "GOVERNOR_NOT_PERMITTED"
    assert reason(asked, plain, view("c", governor="performance")) == ""
    assert reason(spec({"place": "elsewhere"}, "performance"), allowing) == "GOVERNOR_NOT_PERMITTED"
    assert reason(spec(governor="performance", board="b"), allowing, plain) == "GOVERNOR_NOT_PERMITTED"


def test_a_board_that_is_long_gone_is_waited_for_only_where_it_is_named() -> None:
    gone = view("a", gone=True, can=("governor",))
    assert reason(spec(governor="performance"), gone) == "GOVERNOR_NOT_PERMITTED"
    assert reason(spec(governor="performance", board="a"), gone) == ""


def test_a_job_that_leaves_the_board_out_needs_none() -> None:
    job = spec(SHELF, "performance")
    assert needs_boards(job) and not needs_boards(spec())
    job.skip_board = True
    assert not needs_boards(job)
