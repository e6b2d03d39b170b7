"""Print how a job ended: outcome, a table per variant with the kind of every figure, reasons, files, the command."""

from __future__ import annotations

from boardlift._outcome import input_failure
from boardlift._render import figure_text, reproduce_command
from boardlift.cli.output import Output, seconds_text, size_text
from boardlift.models import Failure, JobInfo, VariantVerdict

_ACCURACY = ("cosine", "max_abs", "mean_abs")
_HEADERS = ("variant", "what", "figure", "kind", "limit", "outcome", "about")


def print_end(output: Output, job: JobInfo) -> None:
    """Print everything a user needs after a job."""
    print_headline(output, job)
    failure = job.error or input_failure(job)
    if failure:
        output.failure(failure)
    if job.verdict:
        output.line()
        output.table(_HEADERS, [row for variant in job.verdict.variants for row in _rows(job, variant)])
        _print_list(output, "Reasons", job.verdict.reasons)
        if job.verdict.passed and not _judges_accuracy(job):
            output.line()
            output.line("No gate on accuracy: PASS says nothing about it. Add --gate 'cosine>=0.99'.", "bold yellow")
        _print_list(output, "Next steps", job.verdict.next_steps)
    _print_failed_stages(output, job, failure)
    _print_where(output, job)


def print_headline(output: Output, job: JobInfo) -> None:
    """Print outcome, model, target and time in a line."""
    outcome = job.verdict.outcome if job.verdict else job.state
    seconds = (job.ended - job.created).total_seconds() if job.ended and job.created else None
    parts = [f"{job.model_name or 'model'} -> {job.target}", f"job {job.id}"]
    if job.name and job.name != job.model_name:
        parts.append(job.name)
    if seconds is not None:
        parts.append(seconds_text(seconds))
    cached = sum(stage.cached for stage in job.stages)
    if cached:
        parts.append(f"{cached} of {len(job.stages)} stages from the cache")
    best = f", best variant {job.verdict.best_variant}" if job.verdict and job.verdict.best_variant else ""
    style = {"pass": "bold green", "fail": "bold red", "failed": "bold red"}.get(outcome, "bold yellow")
    output.line(f"{outcome.upper()}{best}", style)
    output.line("  ".join(parts))


def _judges_accuracy(job: JobInfo) -> bool:
    """Return True when some gate limits the error against the float model."""
    variants = job.verdict.variants if job.verdict else ()
    return any(result.gate.metric in _ACCURACY for variant in variants for result in variant.gates)


def _rows(job: JobInfo, variant: VariantVerdict) -> list[tuple[str, ...]]:
    best = bool(job.verdict) and job.verdict is not None and variant.variant == job.verdict.best_variant
    rows: list[tuple[str, ...]] = [(variant.variant + (" *" if best else ""), "", "", "", "", variant.outcome, "")]
    shown = set()
    for result in variant.gates:
        limit = str(result.gate).removeprefix(result.gate.metric).strip()
        value, kind = ("none", "") if result.figure is None else _split(figure_text(result.figure))
        shown.add(result.figure)
        rows.append(("", result.gate.metric, value, kind, limit, result.outcome, result.subject))
    for figure in variant.figures:
        if figure not in shown:
            rows.append(("", figure.name, *_split(figure_text(figure)), "", "", ""))
    return rows


def _split(text: str) -> tuple[str, str]:
    value, _, kind = text.rpartition(" ")
    return (value.removesuffix(" kind"), "unknown") if kind == "unknown" else (value, kind)


def _print_list(output: Output, title: str, items: tuple[str, ...]) -> None:
    if items:
        output.line()
        output.line(f"{title}:", "bold")
    for item in items:
        output.line(f"  - {item}")


def _print_failed_stages(output: Output, job: JobInfo, told: Failure | None) -> None:
    for stage in job.stages:
        if stage.state == "failed" and stage.failure and stage.failure != told:
            output.note(f"{stage.stage} {stage.variant}".strip() + " failed:")
            output.failure(stage.failure)


def _print_where(output: Output, job: JobInfo) -> None:
    if job.artifacts:
        output.line()
        rows = [(a.name, size_text(a.size_bytes), a.sha256[:16]) for a in job.artifacts]
        output.table(("file", "size", "sha256"), rows)
        output.line()
        output.line(f"Report:     boardlift report {job.id} --html report.html")
        output.line(f"All files:  boardlift pull {job.id} DIR")
    output.line(f"Reproduce:  {reproduce_command(job)}")
