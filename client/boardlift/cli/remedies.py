"""`boardlift remedies`: what brings CPU nodes back to the BPU, tried for real and ranked."""

from __future__ import annotations

from collections.abc import Sequence

import click

from boardlift._outcome import FAIL, INPUT_WRONG
from boardlift.cli.explore_options import Exploration, exploration_options, report_refusal
from boardlift.cli.explore_output import print_remedies
from boardlift.cli.parse import data_path, split_names
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines
from boardlift.explore import ExploreClient, untried_passes
from boardlift.message_json import message_to_plain
from boardlift.v1 import explore_pb2


@click.command(cls=Command, short_help="Say what brings nodes of MODEL off the CPU, by building it.")
@exploration_options
@click.option(
    "--precision",
    type=click.Choice(["int8", "int16"]),
    default="int8",
    show_default=True,
    help="Precision of the model as it is.",
)
@click.option(
    "--without-pass", "without", multiple=True, help="Start without this transform pass; it is a remedy then."
)
@click.option("--with-pass", "extra", multiple=True, help="Try this pass, added to the plan, as a remedy.")
@click.option("--dry-run", is_flag=True, help="Name remedies, try none.")
@click.option("--level", type=click.Choice(["O1", "O2"]), default="O2", show_default=True, help="Level of the builds.")
@pass_session
def remedies(
    session: Session,
    exploration: Exploration,
    precision: str,
    without: tuple[str, ...],
    extra: tuple[str, ...],
    dry_run: bool,
    level: str,
) -> int:
    """Say why nodes of MODEL run on the CPU and what helps, by building every remedy."""
    return explore_remedies(
        session, exploration, precision, split_names(without), split_names(extra), dry_run=dry_run, level=level
    )


def explore_remedies(
    session: Session,
    exploration: Exploration,
    precision: str,
    without: Sequence[str] = (),
    extra: Sequence[str] = (),
    *,
    dry_run: bool = False,
    level: str = "O2",
) -> int:
    """Transform, try the remedies and print them; returns the exit code.

    Args:
        session: The run of the command line.
        exploration: The model and its data.
        precision: What it is built in; `int8` or `int16`.
        without: Planned passes to start without.
        extra: Passes to try on top.
        dry_run: Name remedies, try none.
        level: Optimise level of the builds.

    Passes that the compiler names as remedies are run and tried as well, each alone and all together.
    """
    with ExploreClient(session.connection) as client:
        prepared = exploration.prepare(session, client, without, extra)
        if prepared.refused is not None:
            return report_refusal(session, prepared.refused, INPUT_WRONG)
        request = explore_pb2.TryRemediesRequest(
            form=prepared.forms[0],
            alternatives=prepared.forms[1:],
            target=exploration.target,
            optimize_level=level,
        )
        request.variant.preset = precision
        request.variant.calibration.method = "max"
        request.variant.inputs.extend(exploration.input_specs)
        lines = StageLines(session.output, "remedies")
        result = client.try_remedies(request, lines)
        if not dry_run and not result.HasField("failure"):
            spec = exploration.spec
            spec.skip_passes.extend(without)
            passes, told = untried_passes(result), StageLines(session.output, "transform")
            data = data_path(exploration.data)
            made = client.forms_with(exploration.model, data, spec, passes, request.form, told)
            request.alternatives.extend(made.forms)
            request.try_remedies = True
            result = client.try_remedies(request, lines)
            result.findings.extend(made.findings)
    if result.HasField("failure"):
        return report_refusal(session, result, INPUT_WRONG if result.failure.user_fault else FAIL)
    if session.json:
        session.output.emit(message_to_plain(result))
    else:
        print_remedies(session.output, result)
    return 0
