"""`boardlift transform`: rewrite a model for the target and prove it equivalent, without a job."""

from __future__ import annotations

from pathlib import Path

import click

from boardlift import _convert
from boardlift._outcome import INPUT_WRONG
from boardlift._requests import RunOptions, transform_spec
from boardlift.cli.out_path import OUT_FILE
from boardlift.cli.parse import data_path, parse_freeze, parse_shapes, split_names
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines, print_transform, print_transform_plan
from boardlift.errors import InvalidInputError
from boardlift.message_json import message_to_plain
from boardlift.stages import pass_requests
from boardlift.v1.transform_pb2 import TransformSpec


@click.command(cls=Command, short_help="Rewrite MODEL for the target and prove it equal in float.")
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("-o", "--out", type=OUT_FILE, help="Write the transformed model here.")
@click.option("--data", default="", help="Dataset .npz for the proof; random inputs take its place.")
@click.option("--outputs", multiple=True, help="Outputs to keep; default all.")
@click.option("--input-shape", "shapes", multiple=True, help="Shape of an input with open dimensions: obs=1x225.")
@click.option("--freeze", "frozen", multiple=True, help="Input that never changes, becomes a constant: sr=16000.")
@click.option("--pass", "passes", multiple=True, help="Passes, in order: ID or ID:name=value; default the plan's.")
@click.option("--skip-pass", "skip_passes", multiple=True, help="Pass that must not run.")
@click.option("--target", default="rdk-x5", show_default=True, help="Chip and toolchain.")
@click.option("--precision", type=click.Choice(["int8", "int16"]), default=None, help="Precision it is meant for.")
@click.option("--opset", type=int, default=0, help="Opset to end at; default the target's.")
@click.option("--explain", is_flag=True, help="Say which passes would run, why, and what is refused; do nothing.")
@click.option("--snippet", is_flag=True, help="Print Python code that feeds and reads the new model.")
@click.option("--list-passes", is_flag=True, help="List the passes and stop.")
@pass_session
def transform(
    session: Session,
    model: Path | None,
    out: Path | None,
    data: str,
    outputs: tuple[str, ...],
    shapes: tuple[str, ...],
    frozen: tuple[str, ...],
    passes: tuple[str, ...],
    skip_passes: tuple[str, ...],
    target: str,
    precision: str | None,
    opset: int,
    explain: bool,
    snippet: bool,
    list_passes: bool,
) -> int:
    """Rewrite MODEL for the target, prove it equivalent in float, say what changed for your code."""
    if list_passes:
        return _list(session)
    if model is None:
        raise InvalidInputError("MODEL is missing.", reason="USAGE", remedy="See `boardlift transform --help`.")
    options = RunOptions(
        target=target,
        outputs=split_names(outputs),
        input_shapes=parse_shapes(shapes),
        skip_passes=skip_passes,
        freeze=parse_freeze(frozen),
    )
    spec = transform_spec(options)
    spec.passes.extend(pass_requests(passes))
    spec.precision, spec.opset = precision or "", opset
    if explain:
        return _explain(session, model, spec)
    with session.stages() as stages:
        lines = StageLines(session.output, "transform")
        result = stages.transform(model, spec, data_path(data) if data else None, lines)
        failed = result.HasField("failure")
        if out and not failed:
            stages.fetch(result.model, out)
    if session.json:
        session.output.emit(message_to_plain(result))
    elif failed:
        session.output.failure(_convert.to_failure(result.failure))
    else:
        print_transform(session.output, result)
        if snippet:
            session.output.line(result.io_snippet)
        session.output.line(f"wrote {out}" if out else "Not saved; give -o FILE.")
    return INPUT_WRONG if failed else 0


def _explain(session: Session, model: Path, spec: TransformSpec) -> int:
    with session.stages() as stages:
        plan = stages.plan(model, spec)
    if session.json:
        session.output.emit(message_to_plain(plan))
    else:
        print_transform_plan(session.output, plan)
    return INPUT_WRONG if plan.refusals else 0


def _list(session: Session) -> int:
    with session.stages() as stages:
        answer = stages.list_passes()
    if session.json:
        session.output.emit(message_to_plain(answer))
    session.output.table(("pass", "exactness", "what"), [(p.id, p.exactness, p.summary) for p in answer.passes])
    return 0
