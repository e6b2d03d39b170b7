"""`boardlift compare`: two jobs side by side, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import click

from boardlift._render import figure_text
from boardlift.cli.print_verdict import print_headline
from boardlift.cli.session import Command, Session, pass_session
from boardlift.models import Artifact, Figure, JobInfo

Key = tuple[str, str, str]


@click.command(cls=Command)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@pass_session
def compare(session: Session, first: str, second: str) -> int:
    """Compare the figures of jobs A and B, variant by variant."""
    with session.client() as client:
        jobs = [client.get_job(job_id) for job_id in (first, second)]
    rows, differences = compare_jobs(*jobs), find_differences(*jobs)
    if session.json:
        plain = [
            {**dict(zip(("variant", "what", "subject"), key, strict=True)), "a": a, "b": b, "ratio": _ratio(a, b)}
            for key, a, b in rows
        ]
        session.output.emit({"a": first, "b": second, "differences": differences, "figures": plain})
        return 0
    for job in jobs:
        print_headline(session.output, job)
    session.output.line()
    for what, in_a, in_b in differences:
        session.output.line(f"NOT THE SAME {what.upper()}: A {in_a}, B {in_b}.", "bold red")
    if differences:
        session.output.line("Figures of the two jobs say nothing about each other where that matters.", "bold yellow")
        session.output.line()
    table = []
    for (variant, what, subject), a, b in rows:
        ratio = _ratio(a, b)
        change = "" if ratio is None else f"x {ratio:.4g}"
        texts = (figure_text(figure) if figure else "none" for figure in (a, b))
        table.append((variant, f"{what}  {subject}".strip(), *texts, change))
    session.output.table(("variant", "what", f"A {first}", f"B {second}", "B / A"), table)
    return 0


def find_differences(first: JobInfo, second: JobInfo) -> list[tuple[str, str, str]]:
    """Return what the jobs were not equal in, of what every figure depends on, with how each is called."""
    found = []
    pairs = (("model", first.model, second.model), ("dataset", first.dataset, second.dataset))
    for what, a, b in pairs:
        if (a.sha256 if a else "") != (b.sha256 if b else ""):
            found.append((what, _name(a), _name(b)))
    if first.target != second.target:
        found.append(("target", first.target, second.target))
    return found


def compare_jobs(first: JobInfo, second: JobInfo) -> list[tuple[Key, Figure | None, Figure | None]]:
    """Return each figure of either job with its counterpart, once, in the order of the first.

    A figure that decided a gate is also one of its variant's own figures. It is listed by its gate where both jobs have
    that gate, else by its own name.
    """
    gated = [dict(_gated(job)) for job in (first, second)]
    own = [dict(_own(job)) for job in (first, second)]
    shared = gated[0].keys() & gated[1].keys()
    # A job whose gate the other lacks: its figure is listed among the own ones, if it is one of them.
    kept = [
        {key: figure for key, figure in side.items() if key in shared or not _has(own[index], key[0], figure)}
        for index, side in enumerate(gated)
    ]
    told = [
        {key for key in own[index] if _has({k: kept[index][k] for k in shared}, key[0], own[index][key])}
        for index in range(2)
    ]
    # By its own name unless every job that has it shows it by a gate already.
    plain = {
        key
        for key in own[0].keys() | own[1].keys()
        if any(key in own[index] and key not in told[index] for index in range(2))
    }
    left, right = ({**kept[i], **{key: value for key, value in own[i].items() if key in plain}} for i in range(2))
    return [(key, left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right])]


def _gated(job: JobInfo) -> Iterator[tuple[Key, Figure]]:
    for variant in job.verdict.variants if job.verdict else ():
        for result in variant.gates:
            if result.figure:
                yield (variant.variant, result.gate.metric, result.subject), result.figure


def _own(job: JobInfo) -> Iterator[tuple[Key, Figure]]:
    for variant in job.verdict.variants if job.verdict else ():
        for figure in variant.figures:
            yield (variant.variant, figure.name, ""), figure


def _has(figures: Mapping[Key, Figure], variant: str, wanted: Figure) -> bool:
    """Tell whether a variant has this very figure."""
    return any(
        key[0] == variant and str(figure) == str(wanted) and figure.name == wanted.name
        for key, figure in figures.items()
    )


def _name(artifact: Artifact | None) -> str:
    """Return what to call a model or dataset."""
    if artifact is None:
        return "unknown"
    return f"{artifact.name} {artifact.sha256[:12]}".strip()


def _ratio(a: Figure | None, b: Figure | None) -> float | None:
    """Return b / a where both are of the same unit and kind; figures of different kinds are not compared."""
    if a is None or b is None or not a.value or not (math.isfinite(a.value) and math.isfinite(b.value)):
        return None
    if (a.unit, a.kind) != (b.unit, b.kind):
        return None
    return b.value / a.value
