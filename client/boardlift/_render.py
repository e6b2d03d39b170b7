"""Rows of a job's figures, for terminals and notebooks alike. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from html import escape

from boardlift.models import Figure, JobInfo, VariantVerdict


def variant_rows(job: JobInfo) -> list[tuple[str, str, str, str, str]]:
    """Return (variant, outcome, what, figure with kind, limit) rows: every gate, then the other figures."""
    rows = []
    for variant in job.verdict.variants if job.verdict else ():
        label = variant.variant + (" *" if job.verdict and variant.variant == job.verdict.best_variant else "")
        for position, (what, figure, limit, outcome) in enumerate(_figures_of(variant)):
            rows.append(
                (
                    label if not position else "",
                    outcome or (variant.outcome if not position else ""),
                    what,
                    figure,
                    limit,
                )
            )
    return rows


def figure_text(figure: Figure) -> str:
    """Return value, unit and kind."""
    unit = "" if figure.unit in ("", "1") else f" {figure.unit}"
    return f"{figure.value_text}{unit} {figure.kind or 'kind unknown'}"


def _figures_of(variant: VariantVerdict) -> Iterable[tuple[str, str, str, str]]:
    shown = set()
    yield ("verdict", "", "", variant.outcome)
    for result in variant.gates:
        figure = figure_text(result.figure) if result.figure else "no figure"
        name = f"{result.gate.metric} {result.subject}".strip()
        shown.add(result.figure)
        yield (name, figure, str(result.gate).removeprefix(result.gate.metric).strip(), result.outcome)
    for figure_ in variant.figures:
        if figure_ not in shown:
            yield (figure_.name, figure_text(figure_), "", "")


def reproduce_command(job: JobInfo) -> str:
    """Return the command line that submits a job again: the one it came by, or a clone of it when a program sent it."""
    return shlex.join(job.command or ("boardlift", "jobs", "clone", job.id))


def job_html(job: JobInfo) -> str:
    """Return a small table for notebooks."""
    outcome = job.verdict.outcome if job.verdict else job.state
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in variant_rows(job))
    head = "".join(f"<th>{name}</th>" for name in ("variant", "outcome", "what", "figure", "limit"))
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in (job.verdict.reasons if job.verdict else ()))
    return f"<p><b>{escape(job.id)}</b>: {escape(outcome)}</p><ul>{reasons}</ul><table><tr>{head}</tr>{cells}</table>"
