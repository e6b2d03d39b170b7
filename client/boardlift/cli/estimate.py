"""`boardlift estimate`: what a compiled model will cost on a board, as far as that can be said without one."""

from __future__ import annotations

from pathlib import Path

import click

from boardlift.cli.explore_output import print_estimate
from boardlift.cli.session import Command, Session, pass_session
from boardlift.errors import InvalidInputError
from boardlift.explore import ExploreClient
from boardlift.message_json import message_to_plain


@click.command(cls=Command, short_help="Estimate the latency of COMPILED_MODEL (.bin) on a board.")
@click.argument("compiled_model", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@pass_session
def estimate(session: Session, compiled_model: Path) -> int:
    """Estimate the latency of COMPILED_MODEL (.bin) per BPU subgraph and on a board, with error band and limits."""
    with ExploreClient(session.connection) as client:
        try:
            answer = client.estimate(compiled_model)
        except InvalidInputError as error:
            error.metadata["file"] = str(compiled_model)  # the server knows it by its digest only
            raise
    if session.json:
        session.output.emit(message_to_plain(answer))
    else:
        print_estimate(session.output, answer)
    return 0
