"""`boardlift pull`: fetch a job's files, or any artifact by its digest."""

from __future__ import annotations

import re
from pathlib import Path

import click

from boardlift._transfer import safe_name
from boardlift.cli.out_path import OUT_FOLDER
from boardlift.cli.output import size_text
from boardlift.cli.session import Command, Session, pass_session
from boardlift.errors import NotFoundError

_SHA256 = re.compile(r"[0-9a-f]{64}")


@click.command(cls=Command, short_help="Download the files of a job, or one artifact.")
@click.argument("name", metavar="ID")
@click.argument("folder", metavar="[DIR]", type=OUT_FOLDER, default=".")
@click.option("--only", multiple=True, help="Only files of these names.")
@pass_session
def pull(session: Session, name: str, folder: Path, only: tuple[str, ...]) -> int:
    """Download the files of job ID, or the artifact with that SHA-256, into DIR."""
    with session.client() as client:
        if _SHA256.fullmatch(name):
            saved = [client.fetch(name, folder / name)]
        else:
            there = {artifact.name: artifact for artifact in client.get_job(name).artifacts}
            missing = [file for file in only if file not in there]
            found = [there[file] for file in only or there if file in there]
            if missing or not found:
                raise NotFoundError(
                    f"Job {name} has no file {missing[0]}." if missing else f"Job {name} has no files yet.",
                    reason="ARTIFACT_NOT_FOUND",
                    remedy=f"See what there is: boardlift jobs show {name}",
                )
            saved = [client.fetch(artifact, folder / safe_name(artifact.name)) for artifact in found]
    if session.json:
        session.output.emit([{"file": str(path), "size_bytes": path.stat().st_size} for path in saved])
    for path in saved:
        session.output.line(f"{path}  {size_text(path.stat().st_size)}")
    return 0
