"""`boardlift doctor`: what is here, what is missing, and one command to get it."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata

import click

from boardlift import __version__
from boardlift._outcome import INFRASTRUCTURE
from boardlift.cli.boards import status_of
from boardlift.cli.session import Command, Session, pass_session
from boardlift.client import Client
from boardlift.errors import BoardliftError
from boardlift.models import Board, ServerInfo
from boardlift.stages import StageClient

START = (
    "`boardlift doctor` says what is down. Start a local stack with `make up`, or point BOARDLIFT_SERVER, "
    "BOARDLIFT_TRANSFORM and BOARDLIFT_COMPILER at running servers."
)
_START_ONE = "Start a local stack with `make up`, or point {} at a running one."
CLOCK_LIMIT_S = 5.0
"""Deadlines and leases are times; clocks may differ by this much before it matters."""
SIGN_LIFE_S = 15.0
"""How old the sign of life of a board that is online can be."""
_SET_CLOCK = "Set the clock, for example by NTP: deadlines of jobs and leases of boards depend on it."
_VARIABLES = {
    "orchestrator": "BOARDLIFT_SERVER",
    "transform": "BOARDLIFT_TRANSFORM",
    "compiler": "BOARDLIFT_COMPILER",
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    """What."""
    state: str
    """ok, warning or missing."""
    detail: str = ""
    """What was found."""
    remedy: str = ""
    """One command or setting that gets it."""


@click.command(cls=Command, short_help="Check servers, toolchain and boards; say what is missing.")
@pass_session
def doctor(session: Session) -> int:
    """Check versions, servers, toolchain and boards; say what is missing and how to get it."""
    checks = [*_client_checks(), *_server_checks(session)]
    if session.json:
        session.output.emit(checks)
    session.output.table(("what", "state", "found"), [(c.name, c.state, c.detail) for c in checks])
    for check in checks:
        if check.remedy and check.state != "ok":
            session.output.line(f"{check.name}: {check.remedy}", "yellow")
    return INFRASTRUCTURE if any(check.state == "missing" for check in checks) else 0


def _client_checks() -> Iterator[Check]:
    yield Check("boardlift", "ok", f"{__version__}, Python {platform.python_version()} on {platform.machine()}")
    for name in ("grpcio", "protobuf", "numpy", "pillow"):
        try:
            yield Check(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            state = "missing" if name in ("grpcio", "protobuf") else "warning"
            yield Check(name, state, "not installed", f"pip install {name}")


def _server_checks(session: Session) -> Iterator[Check]:
    with session.client(patience_s=0.5) as client, session.stages() as stages:
        yield from _ask("orchestrator", client.connection.address, client.server_info)
        for name in ("transform", "compiler"):
            yield from _ask(name, stages.address(name), _asker(stages, name))
        yield from _board_checks(client, _server_clock(client))


def _asker(stages: StageClient, name: str) -> Callable[[], ServerInfo]:
    return lambda: stages.server_info(name)


def _ask(name: str, address: str, ask: Callable[[], ServerInfo]) -> Iterator[Check]:
    try:
        sent = time.time()
        info = ask()
        received = time.time()
    except BoardliftError as error:
        unanswered = "grpc" in error.metadata or not error.remedy
        remedy = _START_ONE.format(_VARIABLES[name]) if unanswered else error.remedy
        yield Check(name, "missing", f"{address}: {error.message.splitlines()[0]}", remedy)
        return
    slots = f", {info.busy_slots} of {info.slots} slots busy" if info.slots else ""
    yield Check(name, "ok", f"{address}: {info.name} {info.version}{slots}")
    yield from _clock_check(name, info.server_time, sent, received)
    for tool in info.tools:
        kind = " (simulated)" if tool.simulated else ""
        parts = "".join(f", {part} {version}" for part, version in sorted((tool.parts or {}).items()))
        tested = (
            "" if tool.known or tool.simulated or not tool.version else ", not a version this release was tested with"
        )
        state = "ok" if tool.version else "missing"
        yield Check(f"{name} / {tool.name}", state, f"{tool.version or 'not found'}{kind}{parts}{tested}")
    for finding in info.findings:
        state = "missing" if finding.severity == "error" else "warning"
        yield Check(f"{name} / {finding.code}", state, finding.message, finding.remedy)


def _clock_check(name: str, there: datetime | None, sent: float, received: float) -> Iterator[Check]:
    """Compare a server's clock with ours: the answer was written between the two moments."""
    if there is None:
        return
    moment = there.timestamp()
    ahead = moment - received if moment > received else min(0.0, moment - sent)
    if abs(ahead) > CLOCK_LIMIT_S:
        which = "ahead of" if ahead > 0 else "behind"
        yield Check(f"{name} / clock", "warning", f"{abs(ahead):.0f} s {which} this machine's", _SET_CLOCK)


def _server_clock(client: Client) -> Callable[[], float] | None:
    """Return a clock that goes as the orchestrator's; None when it does not say."""
    try:
        there = client.server_info().server_time
    except BoardliftError:
        return None
    if there is None:
        return None
    offset = there.timestamp() - time.time()
    return lambda: time.time() + offset


def _board_clock(board: Board, server_clock: Callable[[], float]) -> Iterator[Check]:
    """Compare a board's clock, by its latest sign of life, with the orchestrator's; it renews that every 5 s."""
    if not board.online or board.last_seen is None:
        return
    age = server_clock() - board.last_seen.timestamp()
    if -CLOCK_LIMIT_S <= age <= SIGN_LIFE_S + CLOCK_LIMIT_S:
        return
    text = f"at least {-age:.0f} s ahead of" if age < 0 else f"at least {age - SIGN_LIFE_S:.0f} s behind"
    yield Check(f"board {board.id} / clock", "warning", f"{text} the orchestrator's", _SET_CLOCK)


def _board_checks(client: Client, server_clock: Callable[[], float] | None) -> Iterator[Check]:
    try:
        boards = client.boards()
    except BoardliftError:
        return
    if not boards:
        yield Check("boards", "missing", "none has registered", _START_ONE.format("BOARDLIFT_SERVER"))
    for board in boards:
        kind = "simulated" if board.simulated else "real"
        state = "ok" if board.online and board.in_rotation else "warning"
        yield Check(f"board {board.id}", state, f"{kind}, {board.target}, {status_of(board)}")
        if server_clock is not None:
            yield from _board_clock(board, server_clock)
        for finding in board.findings:
            yield Check(f"board {board.id} / {finding.code}", "warning", finding.message, finding.remedy)
