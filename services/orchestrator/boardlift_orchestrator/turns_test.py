"""Turns: tables, and a model of a queue that shows what a single job waits for."""

from __future__ import annotations

import dataclasses

from boardlift_orchestrator.index import JobLine
from boardlift_orchestrator.record import JobState
from boardlift_orchestrator.turns import Room, choose_next, has_room, jobs_before

ROOM = Room(front=4, board=3)


def line(name: str, submitter: str = "ann", **more: object) -> JobLine:
    given = {"held": True, "created": float(name.rpartition("-")[2] or 0), **more}
    return JobLine(name, state=JobState.QUEUED, submitter=submitter, **given)  # type: ignore[arg-type]


def active(name: str, submitter: str = "ann", *, board: bool = False) -> JobLine:
    return line(name, submitter, held=False, front=not board, board=board)


def test_one_submitter_alone_gets_all_the_room_in_order() -> None:
    assert choose_next([line(f"a-{i}") for i in (3, 1, 2, 5, 4)], ROOM) == ["a-1", "a-2", "a-3", "a-4"]


def test_submitters_take_turns_whoever_came_first() -> None:
    lines = [*(line(f"a-{i}") for i in range(9)), *(line(f"b-{i}", "bob") for i in range(10, 19))]
    assert choose_next(lines, ROOM) == ["a-0", "b-10", "a-1", "b-11"]


def test_a_single_job_of_somebody_else_comes_in_at_once_though_it_is_full() -> None:
    lines = [*(active(f"a-{i}") for i in range(4)), *(line(f"a-{i}") for i in range(4, 200))]
    assert choose_next(lines, ROOM) == []
    assert choose_next([*lines, line("b-300", "bob")], ROOM) == ["b-300"]
    assert has_room(lines, line("b-300", "bob"), ROOM)
    assert not has_room(lines, line("a-300"), ROOM)


def test_even_newcomers_find_an_end_to_the_room() -> None:
    lines = [line(f"{i}-{i}", f"user {i}") for i in range(50)]
    assert len(choose_next(lines, ROOM)) == 8


def test_a_submitter_whose_jobs_wait_for_boards_holds_up_only_himself() -> None:
    lines = [*(active(f"a-{i}", board=True) for i in range(3)), line("a-7"), line("b-8", "bob"), line("b-9", "bob")]
    assert choose_next(lines, ROOM) == ["b-8", "b-9"]


def test_priority_orders_a_submitter_s_own_jobs_only() -> None:
    lines = [line("a-1"), line("a-2", priority=5), line("b-3", "bob", priority=-100)]
    assert choose_next(lines, Room(2, 3)) == ["a-2", "b-3"]
    assert jobs_before(lines, lines[0]) == 1
    assert jobs_before(lines, lines[1]) == 0


def test_what_has_ended_counts_for_nothing() -> None:
    ended = [dataclasses.replace(active(f"a-{i}"), state=JobState.SUCCEEDED) for i in range(9)]
    cancelled = dataclasses.replace(line("a-20"), state=JobState.CANCELLED)
    assert choose_next([*ended, cancelled, line("a-30")], ROOM) == ["a-30"]


def test_every_job_gets_in_in_the_end_and_never_more_than_the_room_is_in() -> None:
    waiting = {f"{who}-{i}": who for i in range(40) for who in ("ann", "bob", "cid")}
    running: list[str] = []
    order = []
    while waiting or running:
        lines = [line(name, who) for name, who in waiting.items()]
        lines += [active(name, name.partition("-")[0]) for name in running]
        for name in choose_next(lines, ROOM):
            order.append(waiting.pop(name))
            running.append(name)
        assert 1 <= len(running) <= 8
        running.pop(0)
    assert len(order) == 120
    assert {who: order[:30].count(who) for who in ("ann", "bob", "cid")} == {"ann": 10, "bob": 10, "cid": 10}
