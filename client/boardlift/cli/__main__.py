"""Entry point of `boardlift`: run the command, turn every end into an exit code.

0 pass, 1 verdict fail, 2 the input is wrong, 3 infrastructure failed, 4 cancelled, 5 undecided; and 141, as a shell
says it, when whoever read the output has closed it.
"""

from __future__ import annotations

import errno
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType

import click

from boardlift._local_files import why
from boardlift._outcome import CANCELLED, INFRASTRUCTURE, INPUT_WRONG, UNDECIDED
from boardlift.cli.app import app
from boardlift.cli.doctor import START
from boardlift.cli.output import Output
from boardlift.cli.session import Session
from boardlift.cli.terminal import close_quietly, forget_output, write_plainly
from boardlift.errors import (
    AlreadyExistsError,
    BoardliftError,
    CancelledError,
    DeadlineError,
    ExhaustedError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnavailableError,
)

_TERMINATED = "SIGTERM"
OUTPUT_CLOSED = 128 + signal.SIGPIPE
"""Exit code when whoever read the output is gone: `boardlift jobs | head -1`."""
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
    write_plainly()
    code = run(arguments)
    sys.exit(code if close_quietly() else OUTPUT_CLOSED)


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
    except (BrokenPipeError, SystemExit):  # click turns the former into the latter
        forget_output()
        return OUTPUT_CLOSED
    except OSError as error:
        return _report(session, *_of_system(error))
    except Exception as error:  # noqa: BLE001  (the outermost boundary)
        return _report(session, _bug(error), INFRASTRUCTURE)
    return result if isinstance(result, int) else 0


def code_of(error: BoardliftError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, _USER) or (isinstance(error, PreconditionError) and error.reason in _USER_REASONS):
        return INPUT_WRONG
    if isinstance(error, CancelledError):
        return CANCELLED
    return UNDECIDED if isinstance(error, DeadlineError) else INFRASTRUCTURE


def _of_system(error: OSError) -> tuple[BoardliftError, int]:
    """Return what the system refused, and whose it is: a path is the user's, a full disk nobody's who called us."""
    path = error.filename2 or error.filename
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        full = ExhaustedError(f"{error.strerror}.", reason="DISK_FULL", remedy="Free space, then do it again.")
        return full, INFRASTRUCTURE
    if path is None:
        return _bug(error), INFRASTRUCTURE
    known = {"file": str(path)}
    remedy = "Name another file or folder, or correct its rights."
    text = f"{path} can't be used: {why(error)}."
    return InvalidInputError(text, reason="FILE_UNUSABLE", remedy=remedy, metadata=known), INPUT_WRONG


def _bug(error: Exception) -> InternalError:
    remedy = "Run again with --debug and report what it prints."
    return InternalError(f"{type(error).__name__}: {error}", reason="BUG", remedy=remedy)


def _report(session: Session, error: BoardliftError, code: int) -> int:
    if session.debug:
        traceback.print_exc()
    if isinstance(error, UnavailableError) and ("grpc" in error.metadata or not error.remedy):
        error.remedy = START  # nobody answered: the whole stack may be down
    Output(json_mode=session.json).error(error)
    return code


if __name__ == "__main__":
    main()
