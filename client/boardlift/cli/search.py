"""`boardlift search`: find the precision plan, calibration method and form of a model that serve best."""

from __future__ import annotations

import click

from boardlift._outcome import FAIL, INPUT_WRONG
from boardlift.cli.explore_options import Exploration, exploration_options, goal_options, report_refusal
from boardlift.cli.explore_output import print_search
from boardlift.cli.parse import split_names
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines
from boardlift.explore import ExploreClient, parse_goal
from boardlift.message_json import message_to_plain
from boardlift.v1 import explore_pb2


@click.command(cls=Command, short_help="Search the builds of MODEL for speed and accuracy.")
@exploration_options
@goal_options
@click.option("--plan", "plans", multiple=True, help="int8, softmax-int8, softmax-int16, mixed, suggested, int16.")
@click.option("--method", "methods", multiple=True, help="Calibration: max, max-percentile, kl, mix, default.")
@click.option("--without-pass", "without", multiple=True, help="Also search the model without this transform pass.")
@click.option("--with-pass", "extra", multiple=True, help="Also search the model with this pass added to the plan.")
@click.option("--finalists", type=click.IntRange(0, 64), default=0, help="Most real builds; default 6.")
@click.option("--first-samples", type=click.IntRange(0, 4096), default=0, help="Samples in the first round; default 8.")
@click.option("--factor", type=click.IntRange(2, 10), default=3, show_default=True, help="Growth from round to round.")
@click.option("--dry-run", is_flag=True, help="Say what would run and what it would cost, then stop.")
@pass_session
def search(
    session: Session,
    exploration: Exploration,
    metric: str,
    on_output: str,
    reach: float | None,
    plans: tuple[str, ...],
    methods: tuple[str, ...],
    without: tuple[str, ...],
    extra: tuple[str, ...],
    finalists: int,
    first_samples: int,
    factor: int,
    dry_run: bool,
) -> int:
    """Search builds of MODEL: cheap previews first, real builds of survivors, Pareto front of latency and accuracy.

    A search that was interrupted goes on where it stopped: give the same command again.
    """
    goal = parse_goal(metric, on_output, reach)
    with ExploreClient(session.connection) as client:
        prepared = exploration.prepare(session, client, split_names(without), split_names(extra))
        if prepared.refused is not None:
            return report_refusal(session, prepared.refused, INPUT_WRONG)
        request = explore_pb2.SearchVariantsRequest(
            forms=prepared.forms,
            target=exploration.target,
            plans=split_names(plans),
            methods=split_names(methods),
            goal=goal,
            finalists=finalists,
            first_samples=first_samples,
            factor=factor,
            dry_run=dry_run,
        )
        request.base.inputs.extend(exploration.input_specs)
        result = client.search(request, StageLines(session.output, "search"))
    if result.HasField("failure"):
        return report_refusal(session, result, INPUT_WRONG if result.failure.user_fault else FAIL)
    if session.json:
        session.output.emit(message_to_plain(result))
    else:
        print_search(session.output, result)
    return 0 if result.best or dry_run else FAIL
