"""`boardlift check`: transform a model and ask the vendor's checker where its nodes would run. No queue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from boardlift import _convert
from boardlift._outcome import FAIL, INPUT_WRONG
from boardlift._requests import RunOptions, transform_spec
from boardlift.cli.explore_options import Exploration
from boardlift.cli.explore_output import print_islands
from boardlift.cli.parse import parse_freeze, parse_shapes, split_names
from boardlift.cli.remedies import explore_remedies
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines, print_check, print_findings
from boardlift.explore import ExploreClient
from boardlift.message_json import message_to_plain
from boardlift.v1 import explore_pb2


@click.command(cls=Command, short_help="Say which nodes of MODEL run on the CPU, and what helps.")
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
        if every_node:
            raise click.UsageError("--try-remedies lists the nodes on the CPU; it does not go with --all")
        exploration = Exploration(model, data, outputs, shapes, target, frozen, skip_passes)
        return explore_remedies(session, exploration, precision or "int8")
    options = RunOptions(
        target=target,
        outputs=split_names(outputs),
        input_shapes=parse_shapes(shapes),
        skip_passes=split_names(skip_passes),
        freeze=parse_freeze(frozen),
    )
    spec = transform_spec(options)
    spec.precision = precision or ""
    with ExploreClient(session.connection) as stages:
        transformed = stages.transform(model, spec, None, StageLines(session.output, "transform"))
        if transformed.HasField("failure"):
            return _refused(session, transformed, INPUT_WRONG)
        result = stages.check(transformed.model, target, StageLines(session.output, "check"))
        if result.HasField("failure"):
            return _refused(session, result, FAIL)
        form = explore_pb2.ModelForm(name="as-planned", model=transformed.model)
        request = explore_pb2.TryRemediesRequest(form=form, target=target)
        request.variant.preset = spec.precision
        helps = stages.try_remedies(request, StageLines(session.output, "remedies"))
    if helps.HasField("failure"):
        return _refused(session, helps, FAIL)
    if session.json:
        answers = {"transform": transformed, "check": result, "remedies": helps}
        session.output.emit({name: message_to_plain(answer) for name, answer in answers.items()})
        return 0
    for text in transformed.assumptions:
        session.output.line(f"assumed: {text}")
    print_check(session.output, result, every_node)
    print_islands(session.output, helps.islands)
    if helps.remedies:
        rows = [(r.name, r.kind, about(r.nodes), r.message) for r in helps.remedies]
        session.output.table(("what may help", "kind", "for", ""), rows)
        session.output.line("--try-remedies --data DATASET.npz builds each and ranks them.")
    return 0


def about(nodes: Sequence[str]) -> str:
    """Return the first of some nodes and how many more there are."""
    return ", ".join(nodes[:1]) + (f" and {len(nodes) - 1} more" if len(nodes) > 1 else "")


def _refused(session: Session, result: object, code: int) -> int:
    """Report a stage that said no."""
    if session.json:
        session.output.emit(message_to_plain(result))  # type: ignore[arg-type]
        return code
    session.output.failure(_convert.to_failure(result.failure))  # type: ignore[attr-defined]
    print_findings(session.output, result.findings)  # type: ignore[attr-defined]
    return code
