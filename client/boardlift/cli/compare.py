"""`boardlift compare`: two jobs side by side, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator

import click

from boardlift._render import figure_text
from boardlift.cli.print_verdict import print_headline
from boardlift.cli.session import Command, Session, pass_session
from boardlift.models import Figure, JobInfo

Key = tuple[str, str, str]


@click.command(cls=Command)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@pass_session
def compare(session: Session, first: str, second: str) -> int:
    """Compare the figures of jobs A and B, variant by variant."""
    with session.client() as client:
        jobs = [client.get_job(job_id) for job_id in (first, second)]
    rows = compare_jobs(*jobs)
    if session.json:
        plain = [
            {**dict(zip(("variant", "what", "subject"), key, strict=True)), "a": a, "b": b, "ratio": _ratio(a, b)}
            for key, a, b in rows
        ]
        session.output.emit({"a": first, "b": second, "figures": plain})
        return 0
    for job in jobs:
        print_headline(session.output, job)
    session.output.line()
    table = []
    for (variant, what, subject), a, b in rows:
        ratio = _ratio(a, b)
        change = "" if ratio is None else f"x {ratio:.4g}"
        texts = (figure_text(figure) if figure else "none" for figure in (a, b))
        table.append((variant, f"{what}  {subject}".strip(), *texts, change))
    session.output.table(("variant", "what", f"A {first}", f"B {second}", "B / A"), table)
    return 0


def compare_jobs(first: JobInfo, second: JobInfo) -> list[tuple[Key, Figure | None, Figure | None]]:
    """Return each figure of either job with its counterpart, in the order of the first."""
    left, right = dict(_figures(first)), dict(_figures(second))
    return [(key, left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right])]


def _figures(job: JobInfo) -> Iterator[tuple[Key, Figure]]:
    for variant in job.verdict.variants if job.verdict else ():
        for result in variant.gates:
            if result.figure:
                yield (variant.variant, result.gate.metric, result.subject), result.figure
        for figure in variant.figures:
            yield (variant.variant, figure.name, ""), figure


def _ratio(a: Figure | None, b: Figure | None) -> float | None:
    """Return b / a where both are of the same unit and kind; figures of different kinds are not compared."""
    if a is None or b is None or not a.value or (a.unit, a.kind) != (b.unit, b.kind):
        return None
    return b.value / a.value
