"""`boardlift jobs`: list, show, watch, read logs, cancel, remove, run again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from boardlift._outcome import exit_code
from boardlift.cli.output import seconds_text
from boardlift.cli.parse import clean_command, data_path
from boardlift.cli.print_verdict import print_end
from boardlift.cli.run import detached, finish
from boardlift.cli.session import Group, Session, pass_session
from boardlift.models import JobInfo


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def jobs(context: click.Context) -> None:
    """List jobs, or look at one (default: ls)."""
    if context.invoked_subcommand is None:
        context.invoke(list_jobs)


@jobs.command("ls")
@click.option(
    "--state", default="", help="Only jobs in this state: queued, running, succeeded, failed, cancelling, cancelled."
)
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="At most so many.")
@pass_session
def list_jobs(session: Session, state: str = "", limit: int = 20) -> int:
    """List jobs, newest first."""
    with session.client() as client:
        found = list(client.jobs(state=state, limit=limit))
    if session.json:
        session.output.emit(found)
        return 0
    headers = ("job", "state", "verdict", "best", "model", "created", "took", "name")
    session.output.table(headers, [_row(job) for job in found])
    return 0


@jobs.command()
@click.argument("job_id", metavar="ID")
@pass_session
def show(session: Session, job_id: str) -> int:
    """Show a job: stages, verdict, files."""
    with session.client() as client:
        job = client.get_job(job_id)
    if session.json:
        session.output.emit(job)
        return 0
    rows = [
        (
            stage.stage,
            stage.variant,
            stage.state,
            "from the cache" if stage.cached else seconds_text(stage.seconds),
            str(stage.attempt) if stage.attempt > 1 else "",
            stage.worker,
        )
        for stage in job.stages
    ]
    session.output.table(("stage", "variant", "state", "took", "attempt", "worker"), rows)
    for stage in job.stages:
        if stage.note:
            session.output.line(f"{stage.stage} {stage.variant}: {stage.note}", "yellow")
    session.output.line()
    print_end(session.output, job)
    return 0


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--timeout", type=float, default=None, help="Seconds to wait; then the job goes on.")
@pass_session
def watch(session: Session, job_id: str, timeout: float | None) -> int:
    """Follow a job to its end; ends with the code of its verdict. With --json one event per line."""
    with session.client() as client:
        job = client.job(job_id)
        if not session.json:
            return finish(session, job, timeout)
        for event in job.events(timeout=timeout):
            session.output.emit(event)
        return exit_code(job.refresh())


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--stage", default="", help="Only this stage.")
@click.option("--variant", default="", help="Only this variant.")
@pass_session
def logs(session: Session, job_id: str, stage: str, variant: str) -> int:
    """Print what the tools printed; goes on until the job ends."""
    with session.client() as client:
        job = client.job(job_id)
        _check_stage(job.info, stage, variant)
        for event in job.events():
            wanted = stage in ("", event.stage) and variant in ("", event.variant)
            if not event.log or not wanted:
                continue
            if session.json:
                session.output.emit(event)
            else:
                session.output.line(f"[{event.stage} {event.variant}".rstrip() + f"] {event.log.text}")
    return 0


def _check_stage(job: JobInfo, stage: str, variant: str) -> None:
    """Refuse to filter by what the job does not have: nothing printed would look like nothing said."""
    for option, given, there in (
        ("--stage", stage, [item.stage for item in job.stages]),
        ("--variant", variant, list(job.variants)),
    ):
        if given and given not in there:
            raise click.BadParameter(f"job {job.id} has {', '.join(dict.fromkeys(there))}", param_hint=option)


@jobs.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@pass_session
def cancel(session: Session, job_ids: tuple[str, ...]) -> int:
    """Ask jobs to stop; they end within seconds."""
    with session.client() as client:
        stopped = [client.cancel_job(job_id) for job_id in job_ids]
    if session.json:
        session.output.emit(stopped)
    for job in stopped:
        session.output.line(f"{job.id} {job.state}")
    return 0


@jobs.command("rm", short_help="Remove jobs that have ended, for good.")
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@pass_session
def remove(session: Session, job_ids: tuple[str, ...]) -> int:
    """Remove jobs that have ended, for good; files that no other job names go with the server's next sweep."""
    with session.client() as client:
        for job_id in job_ids:
            client.delete_job(job_id)
            session.output.line(f"{job_id} removed")
    if session.json:
        session.output.emit({"removed": job_ids})
    return 0


@jobs.command(short_help="Run a job again, changed or as it was.")
@click.argument("job_id", metavar="ID")
@click.option("--model", type=click.Path(path_type=Path), help="Another model.")
@click.option("--data", default="", help="Another dataset .npz.")
@click.option("--variant", "variants", multiple=True, help="Other variants, as for run.")
@click.option("--gate", "gates", multiple=True, help="Other gates, as for run.")
@click.option("--board", default=None, help="Another board id, or label=value,label=value.")
@click.option("--no-board", is_flag=True, help="Leave the board out.")
@click.option("--name", default=None, help="Another name.")
@click.option("--detach", is_flag=True, help="Print the job's id and return.")
@pass_session
def clone(
    session: Session,
    job_id: str,
    model: Path | None,
    data: str,
    variants: tuple[str, ...],
    gates: tuple[str, ...],
    board: str | None,
    no_board: bool,
    name: str | None,
    detach: bool,
) -> int:
    """Run a job again, with something changed or as it was; what stays the same comes from the cache."""
    changes = {
        "variants": variants or None,
        "gates": gates or None,
        "board": board,
        "skip_board": no_board or None,
        "name": name,
        "command": clean_command(sys.argv[1:]),
    }
    with session.client() as client:
        job = client.clone(job_id, model=model, data=data_path(data) if data else None, **changes)
        if detach:
            return detached(session, job)
        session.output.note(f"job {job.id}")
        return finish(session, job, None)


def _row(job: JobInfo) -> tuple[str, ...]:
    seconds = (job.ended - job.created).total_seconds() if job.ended and job.created else None
    return (
        job.id,
        "waits for its turn" if job.waiting_turn else job.state,
        job.verdict.outcome if job.verdict else "",
        job.verdict.best_variant if job.verdict else "",
        job.model_name,
        job.created.strftime("%Y-%m-%d %H:%M:%SZ") if job.created else "",
        seconds_text(seconds),
        job.name,
    )
