"""`boardlift boards`: which boards there are, what they can do, whether they are busy; forget one that is gone."""

from __future__ import annotations

import click

from boardlift._render import figure_text
from boardlift._requests import parse_labels
from boardlift.cli.output import size_text
from boardlift.cli.session import Group, Session, pass_session
from boardlift.errors import NotFoundError
from boardlift.models import Board


@click.group(cls=Group, invoke_without_command=True)
@click.option("--label", "labels", multiple=True, help="Only boards with this label: soc=x5.")
@click.pass_context
def boards(context: click.Context, labels: tuple[str, ...]) -> None:
    """List boards, or look at one (default: ls)."""
    if context.invoked_subcommand is None:
        context.invoke(list_boards, labels=labels)


@boards.command("ls")
@click.option("--label", "labels", multiple=True, help="Only boards with this label: soc=x5.")
@pass_session
def list_boards(session: Session, labels: tuple[str, ...] = ()) -> int:
    """List the registered boards."""
    with session.client() as client:
        found = client.boards(parse_labels(labels))
    if session.json:
        session.output.emit(found)
        return 0
    rows = [
        (
            board.id,
            board.target,
            "simulated" if board.simulated else "real",
            board.mode,
            status_of(board),
            " ".join(board.capabilities),
            " ".join(f"{key}={value}" for key, value in sorted((board.labels or {}).items())),
        )
        for board in found
    ]
    session.output.table(("board", "target", "kind", "mode", "status", "can", "labels"), rows)
    if not rows and labels:
        session.output.note(f"No board has {' and '.join(labels)}. All of them: boardlift boards")
    elif not rows:
        session.output.note("No board has registered. A simulated one comes with the local stack; see the README.")
    return 0


@boards.command()
@click.argument("board_id", metavar="ID")
@pass_session
def show(session: Session, board_id: str) -> int:
    """Show one board."""
    with session.client() as client:
        found = [board for board in client.boards() if board.id == board_id]
    if not found:
        raise NotFoundError(
            f"There is no board {board_id}.", reason="BOARD_NOT_FOUND", remedy="List them with `boardlift boards`."
        )
    board = found[0]
    if session.json:
        session.output.emit(board)
        return 0
    facts = {
        "board": board.id,
        "target": board.target,
        "kind": "simulated: a stand-in, not silicon" if board.simulated else "real",
        "mode": f"dial, at {board.address}" if board.address else board.mode,
        "status": status_of(board),
        "model": board.model,
        "soc": board.soc,
        "os": board.os_version,
        "memory": size_text(board.memory_bytes) if board.memory_bytes else "",
        "can": ", ".join(board.capabilities),
        "last seen": board.last_seen.isoformat(timespec="seconds") if board.last_seen else "",
        "not readable": ", ".join(board.absent),
    }
    facts |= {f"version {name}": version for name, version in sorted((board.versions or {}).items())}
    facts |= {f"label {name}": value for name, value in sorted((board.labels or {}).items())}
    facts |= {figure.name: figure_text(figure) for figure in board.figures}
    session.output.table(("fact", "value"), [(name, value) for name, value in facts.items() if value])
    session.output.findings(board.findings)
    return 0


@boards.command("rm", short_help="Forget boards that are gone for good.")
@click.argument("board_ids", metavar="ID...", nargs=-1, required=True)
@pass_session
def remove(session: Session, board_ids: tuple[str, ...]) -> int:
    """Forget boards that are gone for good; one that comes back registers anew."""
    with session.client() as client:
        for board_id in board_ids:
            client.delete_board(board_id)
            session.output.line(f"{board_id} removed")
    if session.json:
        session.output.emit({"removed": board_ids})
    return 0


def status_of(board: Board) -> str:
    """Return offline, busy, free, or out of rotation with the reason's code."""
    if not board.online:
        return "offline"
    if board.busy_job or board.lease_holder:
        return f"busy with {board.busy_job or board.lease_holder}"
    if board.in_rotation:
        return "free"
    codes = [finding.code for finding in board.findings if finding.severity == "error"]
    return f"out of rotation: {', '.join(codes)}" if codes else "out of rotation"
