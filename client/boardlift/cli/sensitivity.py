"""`boardlift sensitivity`: which layers suffer from quantisation, and the cheapest mixed plan that is good enough."""

from __future__ import annotations

import click

from boardlift._outcome import FAIL, INPUT_WRONG
from boardlift.cli.explore_options import Exploration, exploration_options, goal_options, report_refusal
from boardlift.cli.explore_output import print_sensitivity
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines
from boardlift.explore import ExploreClient, parse_goal
from boardlift.message_json import message_to_plain
from boardlift.v1 import explore_pb2

MOST = 30


@click.command(cls=Command, short_help="Measure the error of each layer of MODEL.")
@exploration_options
@goal_options
@click.option("--method", default="", help="Calibration method; default max.")
@click.option("--samples", type=click.IntRange(0, 4096), default=0, help="Samples per layer; default 16.")
@click.option("--no-proof", is_flag=True, help="Do not build and run the suggested plan.")
@click.option("--all", "every_layer", is_flag=True, help=f"List all layers, not only the {MOST} most sensitive.")
@pass_session
def sensitivity(
    session: Session,
    exploration: Exploration,
    metric: str,
    on_output: str,
    reach: float | None,
    method: str,
    samples: int,
    no_proof: bool,
    every_layer: bool,
) -> int:
    """Measure the error of each layer of MODEL, alone and together, and suggest which ones to run in int16."""
    goal = parse_goal(metric, on_output, reach)
    with ExploreClient(session.connection) as client:
        prepared = exploration.prepare(session, client)
        if prepared.refused is not None:
            return report_refusal(session, prepared.refused, INPUT_WRONG)
        form = prepared.forms[0]
        request = explore_pb2.MeasureSensitivityRequest(
            model=form.model,
            target=exploration.target,
            calibration=form.calibration,
            heldout=form.heldout,
            reference_outputs=form.reference_outputs,
            goal=goal,
            samples=samples,
            no_proof=no_proof,
        )
        request.variant.calibration.method = method
        request.variant.inputs.extend(exploration.input_specs)
        result = client.measure_sensitivity(request, StageLines(session.output, "sensitivity"))
    if result.HasField("failure"):
        return report_refusal(session, result, INPUT_WRONG if result.failure.user_fault else FAIL)
    if session.json:
        session.output.emit(message_to_plain(result))
    else:
        print_sensitivity(session.output, result, 0 if every_layer else MOST)
    if reach is None:
        return 0
    return 0 if result.HasField("suggested") and result.suggested.reaches_target else FAIL
