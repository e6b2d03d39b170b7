"""`boardlift report`: the verdict again, and the report's files."""

from __future__ import annotations

from pathlib import Path

import click

from boardlift._job_handle import report_artifact
from boardlift.cli.out_path import OUT_FILE
from boardlift.cli.print_verdict import print_end
from boardlift.cli.session import Command, Session, pass_session


@click.command(cls=Command)
@click.argument("job_id", metavar="ID")
@click.option("--html", type=OUT_FILE, help="Save the HTML report to this file.")
@click.option("--junit", type=OUT_FILE, help="Save the JUnit report to this file.")
@click.option("--save", type=OUT_FILE, help="Save the JSON report to this file.")
@pass_session
def report(session: Session, job_id: str, html: Path | None, junit: Path | None, save: Path | None) -> int:
    """Print a job's verdict; save its report. With --json print report.json itself."""
    with session.client() as client:
        job = client.job(job_id)
        for name, target in (("report.html", html), ("junit.xml", junit), ("report.json", save)):
            if target is not None:
                path = client.fetch(report_artifact(job.info, name), target)
                session.output.note(f"saved {path}")
        if session.json:
            session.output.emit(job.report())
        else:
            print_end(session.output, job.info)
    return 0
