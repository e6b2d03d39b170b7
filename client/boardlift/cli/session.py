"""What all commands share: where the server is, how to print, and the options that every command takes."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from boardlift.cli.output import Output
from boardlift.client import Client
from boardlift.connection import Connection
from boardlift.stages import StageClient


@dataclass
class Session:
    """One run of the command line."""

    server: str | None = None
    """Orchestrator; None takes the environment's, else this machine's."""
    token: str | None = field(default=None, repr=False)
    """Bearer token."""
    ca: str | None = None
    """CA certificate."""
    cert: str | None = None
    """Own certificate."""
    key: str | None = None
    """Its key."""
    json: bool = False
    """Print JSON only."""
    debug: bool = False
    """Show stack traces."""

    @property
    def output(self) -> Output:
        """Where to print."""
        return Output(json_mode=self.json)

    @property
    def connection(self) -> Connection:
        """How to reach the server."""
        return Connection.from_environment(self.server, token=self.token, ca=self.ca, cert=self.cert, key=self.key)

    @property
    def interactive(self) -> bool:
        """True when somebody can be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.json

    def client(self, patience_s: float = 20.0) -> Client:
        """Connect to the orchestrator; an outage is told while calls are repeated."""
        client = Client(self.connection, patience_s=patience_s)
        client.on_wait = lambda: self.output.note(
            f"{client.connection.address} does not answer; trying for up to {patience_s:.0f} s, Ctrl-C stops."
        )
        return client

    def stages(self, board: str = "") -> StageClient:
        """Connect to the stage services; `board` is the address of a board agent."""
        return StageClient(self.connection, board=board)


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        setattr(context.ensure_object(Session), str(parameter.name), value)


def _shared_options() -> list[click.Option]:
    def option(name: str, text: str, **more: Any) -> click.Option:
        return click.Option([name], expose_value=False, callback=_remember, help=text, **more)

    return [
        option("--json", "Print JSON on standard output, nothing else.", is_flag=True),
        option("--debug", "Show stack traces.", is_flag=True),
        option(
            "--server",
            "Orchestrator, host:port or https://host:port [BOARDLIFT_SERVER, else 127.0.0.1:7400]; transform and"
            " compiler are looked for at the next two ports [BOARDLIFT_TRANSFORM, BOARDLIFT_COMPILER].",
        ),
        option("--token", "Bearer token; better BOARDLIFT_TOKEN or BOARDLIFT_TOKEN_FILE.", hidden=True),
        option("--ca", "CA certificate in PEM [BOARDLIFT_CA].", hidden=True),
        option("--cert", "Own certificate in PEM [BOARDLIFT_CERT].", hidden=True),
        option("--key", "Key of the own certificate [BOARDLIFT_KEY].", hidden=True),
    ]


def _say_repeatable(options: Sequence[click.Parameter]) -> None:
    """Say it where it holds: the name of an option does not tell whether a second one adds or wins."""
    for option in options:
        if isinstance(option, click.Option) and option.multiple and option.help:
            option.help = f"{option.help} May be repeated."


class Command(click.Command):
    """A command with the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Add the shared options behind the command's own."""
        super().__init__(*args, **kwargs)
        _say_repeatable(self.params)
        self.params += _shared_options()


_OTHER_WORDS = {
    "cancel": "jobs cancel",
    "download": "pull",
    "explain": "transform --explain",
    "init": "dataset",
    "list": "jobs",
    "logs": "jobs logs",
    "ls": "jobs",
    "results": "report",
    "rm": "jobs rm",
    "show": "jobs show",
    "status": "jobs show",
    "submit": "run --detach",
    "upload": "push",
    "watch": "jobs watch",
}
"""What other tools call it -> our command."""


class Group(click.Group):
    """A group that has the shared options and whose commands have them."""

    command_class = Command
    group_class = type  # groups made by a group are Groups too

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Add the shared options behind the group's own."""
        super().__init__(*args, **kwargs)
        _say_repeatable(self.params)
        self.params += _shared_options()

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is refused with the likely ones beside it."""
        word = click.utils.make_str(arguments[0])
        if self.get_command(context, word) is None and word.isidentifier():
            near = difflib.get_close_matches(word, self.list_commands(context), n=2)
            if word in _OTHER_WORDS and context.parent is None:
                near.insert(0, _OTHER_WORDS[word])
            if near:
                context.fail(f"No such command {word!r}. Did you mean {' or '.join(repr(name) for name in near)}?")
        if self.get_command(context, word) is None and self.get_command(context, "show") and word[:1].isalnum():
            context.fail(f"No such command {word!r}. To look at that one: {context.command_path} show {word}")
        return super().resolve_command(context, arguments)


pass_session: Callable[[Any], Any] = click.make_pass_decorator(Session, ensure=True)
