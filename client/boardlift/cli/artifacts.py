"""`boardlift artifacts`: how much the servers' stores hold, and what their last sweep freed."""

from __future__ import annotations

import click

from boardlift.cli.output import size_text
from boardlift.cli.session import Command, Session, pass_session
from boardlift.errors import BoardliftError
from boardlift.models import ServerInfo, to_plain


@click.command(cls=Command, short_help="Show how full each server's artifact store is.")
@pass_session
def artifacts(session: Session) -> int:
    """Show the size of each server's artifact store, its limit, and what the last sweep removed."""
    found: dict[str, ServerInfo] = {}
    with session.client() as client, session.stages() as stages:
        found["orchestrator"] = client.server_info()
        for name in ("transform", "compiler"):
            try:
                found[name] = stages.server_info(name)
            except BoardliftError as error:
                session.output.note(f"The {name} service can't be asked: {error.message}")
    if session.json:
        session.output.emit({name: to_plain(info.store) for name, info in found.items()})
        return 0
    headers = ("store of", "objects", "size", "limit", "last sweep", "freed", "jobs removed")
    session.output.table(headers, [_row(name, info) for name, info in found.items()])
    for info in found.values():
        session.output.findings(finding for finding in info.findings if finding.code.startswith("STORE_"))
    return 0


def _row(name: str, info: ServerInfo) -> tuple[str, ...]:
    store = info.store
    if store is None:
        return (name, "", "", "", "not yet", "", "")
    return (
        name,
        str(store.objects),
        size_text(store.size_bytes),
        size_text(store.limit_bytes) if store.limit_bytes else "none",
        store.swept.strftime("%Y-%m-%d %H:%M:%SZ") if store.swept else "",
        f"{size_text(store.freed_bytes)} in {store.freed_objects} objects",
        str(store.removed_jobs),
    )
