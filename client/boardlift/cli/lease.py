"""`boardlift lease`: have a board for oneself for a while, and give it back whatever happens."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from datetime import timedelta
from types import FrameType
from typing import Any

import click

from boardlift.cli.session import Command, Session, pass_session
from boardlift.errors import InvalidInputError
from boardlift.v1 import job_pb2

_UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_duration(text: str) -> timedelta:
    """`90s`, `30m`, `2h` or seconds.

    Raises:
        InvalidInputError: DURATION_INVALID.
    """
    match = re.fullmatch(r"(\d{1,6})([smh]?)", text.strip())
    if match is None:
        raise InvalidInputError(f"{text!r} is no duration.", reason="DURATION_INVALID", remedy="Write 90s, 30m or 2h.")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2] or "s"])


@click.command(
    cls=Command, short_help="Have BOARD for yourself while CMD runs.", context_settings={"ignore_unknown_options": True}
)
@click.argument("board_id", metavar="BOARD")
@click.option("--for", "length", default="30m", show_default=True, help="How long: 90s, 30m, 2h.")
@click.option("--holder", default="", help="Who has it, for lists; default your name at the server.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@pass_session
def lease(session: Session, board_id: str, length: str, holder: str, command: tuple[str, ...]) -> int:
    """Have BOARD for yourself while CMD runs; without CMD until Ctrl-C. Jobs leave it alone meanwhile.

    The board is given back when CMD ends, when you press Ctrl-C, and by itself when the time is over. Exit code is
    CMD's.
    """
    limit = parse_duration(length)
    request = job_pb2.GrantBoardLeaseRequest(board_id=board_id, holder=holder)
    request.limit_duration.FromTimedelta(limit)
    with session.client() as client:
        granted = client._call(client._boards.GrantBoardLease, request)
        if session.json:
            session.output.emit(
                {"board": board_id, "lease": granted.lease_id, "until": granted.end_time.ToJsonString()}
            )
        session.output.note(f"{board_id} is yours until {granted.end_time.ToDatetime():%Y-%m-%d %H:%M:%SZ}.")
        if granted.busy_job:
            session.output.note(f"It still works for {granted.busy_job}; wait for its end before you measure.")
        previous = signal.signal(signal.SIGTERM, _interrupt)
        try:
            return _hold(command, limit.total_seconds())
        except KeyboardInterrupt:
            return 130
        finally:
            signal.signal(signal.SIGTERM, previous)
            release = job_pb2.ReleaseBoardLeaseRequest(board_id=board_id, lease_id=granted.lease_id)
            client._call(client._boards.ReleaseBoardLease, release)
            session.output.note(f"{board_id} is given back.")


def _interrupt(number: int, frame: FrameType | None) -> Any:
    raise KeyboardInterrupt


def _hold(command: tuple[str, ...], limit_s: float) -> int:
    if not command:
        time.sleep(limit_s)
        return 0
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        raise InvalidInputError(
            f"{command[0]} does not start: {error.strerror}.", reason="COMMAND_INVALID", remedy="Correct the command."
        ) from error
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return 124
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
