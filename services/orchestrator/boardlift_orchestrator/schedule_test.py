"""Where board stages go, and when they go elsewhere."""

from __future__ import annotations

import pytest
from boardlift.v1 import job_pb2

from boardlift_orchestrator.schedule import BoardView, choose_place, describe_wait, is_lost

FREE = BoardView("free", "rdk-x5", {"lab": "a"})
BUSY = BoardView("busy", "rdk-x5", {"lab": "a"}, busy_job="j")
HOT = BoardView("hot", "rdk-x5", {"lab": "a"}, in_rotation=False)
GONE = BoardView("gone", "rdk-x5", {"lab": "a"}, online=False)
TAKEN = BoardView("taken", "rdk-x5", {"lab": "a"}, leased=True)
CUT = BoardView("cut", "rdk-x5", {"lab": "a"}, in_rotation=False, reachable=False)
OTHER = BoardView("other", "rdk-s100", {"lab": "a"})
ALL = [BUSY, FREE, HOT, GONE, TAKEN, CUT, OTHER]
ANY = job_pb2.BoardSelector()
LAB = job_pb2.BoardSelector(labels={"lab": "a"})
NAMED = job_pb2.BoardSelector(id="gone")


@pytest.mark.parametrize(
    ("selector", "boards", "place"),
    [
        (ANY, ALL, "pool.rdk-x5"),
        (ANY, [], "pool.rdk-x5"),
        (NAMED, ALL, "id.gone"),
        (LAB, ALL, "id.free"),
        (LAB, [BUSY, HOT], "id.busy"),
        (LAB, [HOT, GONE, TAKEN, OTHER], ""),
        (job_pb2.BoardSelector(labels={"lab": "b"}), ALL, ""),
    ],
)
def test_choice(selector: job_pb2.BoardSelector, boards: list[BoardView], place: str) -> None:
    assert choose_place(selector, "rdk-x5", boards) == place


@pytest.mark.parametrize(
    ("selector", "boards", "avoid", "place"),
    [
        (ANY, ALL, ["free"], "id.busy"),
        (ANY, [FREE], ["free"], "pool.rdk-x5"),
        (LAB, [FREE, BUSY], ["free"], "id.busy"),
        (LAB, [FREE], ["free"], "id.free"),
        (LAB, [HOT], ["free"], ""),
        (NAMED, ALL, ["gone"], "id.gone"),
    ],
)
def test_a_board_on_which_it_broke_is_taken_last(
    selector: job_pb2.BoardSelector, boards: list[BoardView], avoid: list[str], place: str
) -> None:
    assert choose_place(selector, "rdk-x5", boards, avoid) == place


SETS = BoardView("sets", "rdk-x5", {"lab": "a"}, busy_job="j", capabilities=("perf", "governor"))
SETS_HOT = BoardView("sets-hot", "rdk-x5", {"lab": "b"}, in_rotation=False, capabilities=("governor",))

SETS_GONE = BoardView("sets-gone", "rdk-x5", {"lab": "a"}, online=False, capabilities=("governor",), gone=True)


@pytest.mark.parametrize(
    ("selector", "boards", "avoid", "place"),
    [
        (ANY, [*ALL, SETS, SETS_HOT], [], "id.sets"),
        (LAB, [*ALL, SETS], [], "id.sets"),
        (ANY, [*ALL, SETS], ["sets"], "id.sets"),
        (ANY, [*ALL, SETS_HOT], [], ""),  # it is waited for: the others would refuse
        (ANY, [*ALL, SETS_GONE], [], "pool.rdk-x5"),  # nobody should wait for it, so any other board may refuse
        (ANY, [*ALL, SETS_GONE, SETS_HOT], [], ""),
        (LAB, [FREE, SETS_GONE], [], "id.free"),
        (ANY, ALL, [], "pool.rdk-x5"),  # there is none: a refusal says why, a wait would say nothing
        (LAB, [*ALL, SETS_HOT], [], "id.free"),
        (NAMED, [*ALL, SETS], [], "id.gone"),
    ],
)
def test_a_run_that_needs_a_capability_goes_where_it_is(
    selector: job_pb2.BoardSelector, boards: list[BoardView], avoid: list[str], place: str
) -> None:
    assert choose_place(selector, "rdk-x5", boards, avoid, "governor") == place


@pytest.mark.parametrize(
    ("place", "selector", "begun", "lost"),
    [
        ("id.free", LAB, False, False),
        ("id.gone", LAB, False, True),
        ("id.gone", LAB, True, True),
        ("id.unknown", LAB, False, True),
        ("id.hot", LAB, False, True),
        ("id.hot", LAB, True, False),
        ("id.taken", LAB, False, True),
        ("id.taken", LAB, True, False),
        ("id.gone", NAMED, False, False),
        ("pool.rdk-x5", ANY, False, False),
        ("", LAB, False, False),
        ("id.cut", LAB, True, True),
        ("id.cut", job_pb2.BoardSelector(id="cut"), True, False),
    ],
)
def test_loss(place: str, selector: job_pb2.BoardSelector, begun: bool, lost: bool) -> None:
    assert is_lost(place, selector, ALL, begun) is lost


@pytest.mark.parametrize(
    ("selector", "boards", "needs", "text"),
    [
        (
            LAB,
            [TAKEN, HOT, GONE, CUT, OTHER],
            "",
            "waiting for a board with the labels lab=a: cut is not reached by the orchestrator; gone is offline; "
            "hot is out of rotation; taken is lent to a person",
        ),
        (
            job_pb2.BoardSelector(id="hot"),
            ALL,
            "",
            "waiting for the board hot: it is out of rotation; see `boardlift boards`",
        ),
        (job_pb2.BoardSelector(id="new"), ALL, "", "waiting for the board new: it has not registered"),
        (
            ANY,
            [FREE, SETS_HOT],
            "governor",
            "waiting for a board with the capability governor: sets-hot is out of rotation",
        ),
        (
            job_pb2.BoardSelector(labels={"lab": "c", "fan": "no"}),
            ALL,
            "governor",
            "waiting for a board with the labels fan=no,lab=c and the capability governor: no such board of the target "
            "rdk-x5 has registered",
        ),
    ],
)
def test_a_wait_says_what_for_and_what_is_the_matter(
    selector: job_pb2.BoardSelector, boards: list[BoardView], needs: str, text: str
) -> None:
    assert describe_wait(selector, "rdk-x5", boards, needs) == text


def test_a_wait_for_many_boards_stays_short() -> None:
    boards = [BoardView(f"b{number:03}", "rdk-x5", {"lab": "a"}, online=False, gone=True) for number in range(300)]
    assert describe_wait(LAB, "rdk-x5", boards).endswith("b004 is long gone and 295 more")
