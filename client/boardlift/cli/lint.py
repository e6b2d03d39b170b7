"""`boardlift lint`: look for what spoils a calibration before it does: NaN, ranges, types, shapes, duplicates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from boardlift import _convert
from boardlift._outcome import INPUT_WRONG
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import print_findings
from boardlift.message_json import message_to_plain
from boardlift.models import Finding
from boardlift.v1 import transform_pb2


@click.command(cls=Command, short_help="Check the dataset DATA, by itself or for a model.")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--model", type=click.Path(path_type=Path), help="Model they are for: checks names, types, shapes.")
@click.option("--calibration", type=click.IntRange(0), default=0, help="Calibration samples; default the dataset's.")
@click.option("--heldout", type=click.IntRange(0), default=0, help="Held-out samples; default the dataset's.")
@pass_session
def lint(session: Session, data: Path, model: Path | None, calibration: int, heldout: int) -> int:
    """Check the dataset DATA by itself and, with --model, against a model."""
    from boardlift.datasets import read_dataset
    from boardlift.datasets.inspect import describe_arrays, find_problems

    dataset = read_dataset(data)
    findings = find_problems(dataset)
    prepared = None
    if model is not None:
        split = transform_pb2.SplitSpec(calibration_samples=calibration, heldout_samples=heldout)
        with session.stages() as stages:
            prepared = stages.prepare_dataset(model, data, split)
        findings = _without_repeated(findings, prepared)
    failed = any(finding.severity == "error" for finding in findings) or (
        prepared is not None and (prepared.HasField("failure") or _has_errors(prepared))
    )
    rows = describe_arrays(dataset)
    if session.json:
        answer = message_to_plain(prepared) if prepared is not None else None
        session.output.emit({"arrays": rows, "findings": findings, "prepared": answer, "ok": not failed})
        return INPUT_WRONG if failed else 0
    _print(session, rows, findings)
    if prepared is not None:
        print_findings(session.output, prepared.findings)
        if prepared.HasField("failure"):
            session.output.failure(_convert.to_failure(prepared.failure))
        else:
            counts = f"{prepared.calibration_samples} to calibrate, {prepared.heldout_samples} held out"
            session.output.line(f"split: {counts}")
    session.output.line("Not usable." if failed else "Usable.", "bold red" if failed else "bold green")
    return INPUT_WRONG if failed else 0


def _without_repeated(findings: list[Finding], prepared: transform_pb2.PrepareDatasetResponse) -> list[Finding]:
    """Return what the server, which knows the model, does not say as well."""
    said = {finding.code for finding in prepared.findings} | {prepared.failure.code}
    return [finding for finding in findings if finding.code not in said]


def _print(session: Session, rows: list[dict[str, Any]], findings: list[Finding]) -> None:
    headers = ("input", "dtype", "samples", "shape", "min", "max", "mean", "std")
    session.output.table(headers, [tuple(str(row[name]) for name in headers) for row in rows])
    session.output.findings(findings)


def _has_errors(prepared: Any) -> bool:
    return any(_convert.to_finding(finding).severity == "error" for finding in prepared.findings)
