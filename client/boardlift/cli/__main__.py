"""Entry point of `boardlift`: run the command, turn every end into an exit code.

0 pass, 1 verdict fail, 2 the input is wrong, 3 infrastructure failed, 4 cancelled, 5 undecided.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType

import click

from boardlift._outcome import CANCELLED, INFRASTRUCTURE, INPUT_WRONG, UNDECIDED
from boardlift.cli.app import app
from boardlift.cli.doctor import START
from boardlift.cli.output import Output
from boardlift.cli.session import Session
from boardlift.errors import (
    AlreadyExistsError,
    BoardliftError,
    CancelledError,
    DeadlineError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnavailableError,
)

_TERMINATED = "SIGTERM"
_USER = (InvalidInputError, NotFoundError, AlreadyExistsError, PermissionDeniedError, UnauthenticatedError)
_USER_REASONS = (
    "ARTIFACT_MISSING",
    "BOARDS_LONG_GONE",
    "BOARD_LEASED",
    "BOARD_ONLINE",
    "GOVERNOR_NOT_PERMITTED",
    "JOB_NOT_ENDED",
    "NOTHING_COMPILED",
    "NO_SAMPLES",
)
"""Preconditions that are the user's to change; others, such as a missing toolchain, are the machinery's."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and exit; SIGTERM stops as Ctrl-C does: what ends a CI run also frees the tools that it had started."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(run(arguments))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(_TERMINATED)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    session = Session()
    try:
        result = app.main(args=arguments, prog_name="boardlift", obj=session, standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # a bare `boardlift` asks for help, it is no mistake to be told
        return INPUT_WRONG
    except click.ClickException as error:
        usage = InvalidInputError(error.format_message(), reason="USAGE", remedy="See `boardlift --help`.")
        if isinstance(error, click.UsageError) and error.ctx:
            usage.remedy = f"See `{error.ctx.command_path} --help`."
        return _report(session, usage, INPUT_WRONG)
    except (click.Abort, KeyboardInterrupt) as stop:
        by = _TERMINATED if _TERMINATED in (stop.__cause__ or stop).args else "the keyboard"
        return _report(session, CancelledError(f"Stopped by {by}."), CANCELLED)
    except BoardliftError as error:
        return _report(session, error, code_of(error))
    except BrokenPipeError:
        sys.stderr.close()
        return INFRASTRUCTURE
    except Exception as error:  # noqa: BLE001  (the outermost boundary)
        fault = InternalError(
            f"{type(error).__name__}: {error}", reason="BUG", remedy="Run again with --debug and report what it prints."
        )
        return _report(session, fault, INFRASTRUCTURE)
    return result if isinstance(result, int) else 0


def code_of(error: BoardliftError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, _USER) or (isinstance(error, PreconditionError) and error.reason in _USER_REASONS):
        return INPUT_WRONG
    if isinstance(error, CancelledError):
        return CANCELLED
    return UNDECIDED if isinstance(error, DeadlineError) else INFRASTRUCTURE


def _report(session: Session, error: BoardliftError, code: int) -> int:
    if session.debug:
        traceback.print_exc()
    if isinstance(error, UnavailableError) and ("grpc" in error.metadata or not error.remedy):
        error.remedy = START  # nobody answered: the whole stack may be down
    Output(json_mode=session.json).error(error)
    return code


if __name__ == "__main__":
    main()
