"""`boardlift check`: transform a model and ask the vendor's checker where its nodes would run. No queue."""

from __future__ import annotations

from pathlib import Path

import click

from boardlift import _convert
from boardlift._outcome import FAIL, INPUT_WRONG
from boardlift._requests import RunOptions, transform_spec
from boardlift.cli.explore_options import Exploration
from boardlift.cli.parse import parse_freeze, parse_shapes, split_names
from boardlift.cli.remedies import explore_remedies
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines, print_check, print_findings
from boardlift.message_json import message_to_plain


@click.command(cls=Command)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--outputs", multiple=True, help="Outputs to keep; default all.")
@click.option("--input-shape", "shapes", multiple=True, help="Shape of an input with open dimensions: obs=1x225.")
@click.option("--freeze", "frozen", multiple=True, help="Input that never changes, becomes a constant: sr=16000.")
@click.option("--skip-pass", "skip_passes", multiple=True, help="Transform pass that must not run.")
@click.option("--target", default="rdk-x5", show_default=True, help="Chip and toolchain.")
@click.option("--precision", type=click.Choice(["int8", "int16"]), default=None, help="Precision it is meant for.")
@click.option("--try-remedies", is_flag=True, help="Build every remedy and rank them, as `boardlift remedies` does.")
@click.option("--data", default="", help="Dataset .npz; needed by --try-remedies only.")
@click.option("--all", "every_node", is_flag=True, help="List every node, not only those with a reason.")
@pass_session
def check(
    session: Session,
    model: Path,
    outputs: tuple[str, ...],
    shapes: tuple[str, ...],
    frozen: tuple[str, ...],
    skip_passes: tuple[str, ...],
    target: str,
    precision: str | None,
    try_remedies: bool,
    data: str,
    every_node: bool,
) -> int:
    """Say which nodes of MODEL run on the BPU, which on the CPU, why, and what helps."""
    if try_remedies:
        if not data:
            raise click.UsageError("--try-remedies builds the model and needs --data DATASET.npz")
        if skip_passes or frozen or every_node:
            raise click.UsageError(
                "--try-remedies takes none of --skip-pass, --freeze, --all; `boardlift remedies --without-pass` starts"
                " without a pass"
            )
        return explore_remedies(session, Exploration(model, data, outputs, shapes, target), precision or "int8")
    options = RunOptions(
        target=target,
        outputs=split_names(outputs),
        input_shapes=parse_shapes(shapes),
        skip_passes=skip_passes,
        freeze=parse_freeze(frozen),
    )
    spec = transform_spec(options)
    spec.precision = precision or ""
    with session.stages() as stages:
        transformed = stages.transform(model, spec, None, StageLines(session.output, "transform"))
        if transformed.HasField("failure"):
            return _refused(session, transformed, INPUT_WRONG)
        result = stages.check(transformed.model, target, StageLines(session.output, "check"))
    if result.HasField("failure"):
        return _refused(session, result, FAIL)
    if session.json:
        session.output.emit({"transform": message_to_plain(transformed), "check": message_to_plain(result)})
        return 0
    for text in transformed.assumptions:
        session.output.line(f"assumed: {text}")
    print_check(session.output, result, every_node)
    return 0


def _refused(session: Session, result: object, code: int) -> int:
    """Report a stage that said no."""
    if session.json:
        session.output.emit(message_to_plain(result))  # type: ignore[arg-type]
        return code
    session.output.failure(_convert.to_failure(result.failure))  # type: ignore[attr-defined]
    print_findings(session.output, result.findings)  # type: ignore[attr-defined]
    return code
