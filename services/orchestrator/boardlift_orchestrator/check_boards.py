"""Refuse a job at once when no registered board could take its board stages, instead of after it was compiled. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from boardlift.errors import PreconditionError
from boardlift.v1 import job_pb2

from boardlift_orchestrator.schedule import BoardView, has_labels

GOVERNOR: Final = "governor"
"""Capability of boards whose owner lets runs set a clock governor."""
_NAMED: Final = 5


def needs_boards(spec: job_pb2.JobSpec) -> bool:
    """Tell whether `check_boards` has something to look at."""
    return not spec.skip_board and bool(spec.board.labels or spec.perf.governor)


def check_boards(spec: job_pb2.JobSpec, boards: Sequence[BoardView]) -> None:
    """Check that some board can be hoped for.

    Args:
        spec: The job.
        boards: All registered boards.

    Raises:
        PreconditionError: BOARDS_LONG_GONE: all boards with the job's labels have given no sign of life for half an
            hour; labels that no board has may be those of one that registers later. GOVERNOR_NOT_PERMITTED: none of the
            boards that the job could go to lets a run set a governor, or is under the one that it asks for.
    """
    wanted = spec.board
    known = [
        board
        for board in boards
        if board.target == spec.target and wanted.id in ("", board.id) and has_labels(board.labels, wanted.labels)
    ]
    if wanted.labels and known and all(board.gone for board in known):
        labels = ",".join(f"{name}={value}" for name, value in sorted(wanted.labels.items()))
        raise PreconditionError(
            f"All boards with the labels {labels} are long gone: {_names(known)}.",
            reason="BOARDS_LONG_GONE",
            remedy="Start one of them first, choose other labels, or name one by its id to have the job wait for it.",
            metadata={"field": "spec.board.labels", "boards": _names(known)},
        )
    governor = spec.perf.governor
    if governor and not any(_may_run_under(governor, board, named=bool(wanted.id)) for board in known):
        where = _names(known) or "none that fits has registered"
        raise PreconditionError(
            f"The job asks for the governor {governor}, and no board it could go to lets it be set: {where}.",
            reason="GOVERNOR_NOT_PERMITTED",
            remedy="Set BOARDLIFT_ALLOW_GOVERNOR=1 on a board, choose one that can do it (see `boardlift boards`),"
            " or ask for no governor.",
            metadata={"field": "spec.perf.governor", "governor": governor},
        )


def _may_run_under(governor: str, board: BoardView, *, named: bool) -> bool:
    """Tell whether a run may be under a governor there; a board named by the user is waited for however long."""
    permitted = GOVERNOR in board.capabilities and (named or not board.gone)
    return permitted or board.governor == governor


def _names(boards: Sequence[BoardView]) -> str:
    names = sorted(board.id for board in boards)
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
