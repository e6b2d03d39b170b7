"""What `--help` says is whole: no summary is cut off, no option goes without a word."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from boardlift.cli.app import app


def _groups(group: click.Group, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Group]:
    inner = {(*path, name): item for name, item in group.commands.items() if isinstance(item, click.Group)}
    return {path: group} | {p: g for name, item in inner.items() for p, g in _groups(item, name).items()}


GROUPS = _groups(app)
COMMANDS = {(*path, name): item for path, group in GROUPS.items() for name, item in group.commands.items()}


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_summaries_fit_a_narrow_terminal(path):
    shown = CliRunner().invoke(app, [*path, "--help"], terminal_width=80, prog_name="boardlift").output
    lines = shown[shown.index("Commands:") :].splitlines()[1:]
    assert len(lines) == len(GROUPS[path].commands) and not [line for line in lines if line.endswith("...")]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_says_what_it_is_and_whether_it_may_come_again(path):
    options = [item for item in COMMANDS[path].params if isinstance(item, click.Option)]
    assert not [option.opts for option in options if not option.help]
    assert not [option.opts for option in options if option.multiple and "May be repeated." not in str(option.help)]
