"""`boardlift push`: store files on the server; prints their ids, instant for what is known there."""

from __future__ import annotations

from pathlib import Path

import click

from boardlift.cli.session import Command, Session, pass_session


@click.command(cls=Command, short_help="Store files; a model goes with its weight files.")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@pass_session
def push(session: Session, paths: tuple[Path, ...]) -> int:
    """Store FILEs; an ONNX model goes with the weight files it keeps outside itself."""
    artifacts = []
    with session.client() as client:
        for path in paths:
            if path.suffix == ".onnx":
                model = client.push_model(path)
                artifacts += [model.artifact, *model.external]
            else:
                artifacts.append(client.push(path))
    if session.json:
        session.output.emit(artifacts)
    for artifact in artifacts:
        session.output.line(f"{artifact.sha256}  {artifact.name}")
    return 0
