"""What the commands that explore a model share: options, the transform before, and how a refusal is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from boardlift import _convert
from boardlift._requests import RunOptions, transform_spec
from boardlift.cli.parse import data_path, parse_shapes, split_names
from boardlift.cli.session import Session
from boardlift.cli.stage_output import StageLines, print_findings
from boardlift.explore import ExploreClient, PreparedForms
from boardlift.message_json import message_to_plain

METRICS = ("cosine", "max_abs", "mean_abs", "rmse", "p99_abs")


@dataclass(frozen=True)
class Exploration:
    """What is explored and how the model gets ready for it."""

    model: Path
    """The user's model."""
    data: str
    """Dataset, .npz."""
    outputs: tuple[str, ...]
    """Outputs to keep."""
    shapes: tuple[str, ...]
    """Shapes of inputs with open dimensions."""
    target: str
    """Chip and toolchain."""

    def prepare(
        self, session: Session, client: ExploreClient, without: Sequence[str] = (), extra: Sequence[str] = ()
    ) -> PreparedForms:
        """Transform the model into its forms."""
        options = RunOptions(
            target=self.target, outputs=split_names(self.outputs), input_shapes=parse_shapes(self.shapes)
        )
        lines = StageLines(session.output, "transform")
        return client.prepare_forms(self.model, data_path(self.data), transform_spec(options), without, extra, lines)


def exploration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add MODEL and the options that say how it gets ready."""
    for add in (
        click.option("--target", default="rdk-x5", show_default=True, help="Chip and toolchain."),
        click.option(
            "--input-shape", "shapes", multiple=True, help="Shape of an input with open dimensions: obs=1x225."
        ),
        click.option("--outputs", multiple=True, help="Outputs to keep; default all."),
        click.option("--data", required=True, help="Dataset .npz; split into calibration and held-out samples."),
        click.argument("model", type=click.Path(path_type=Path)),
    ):
        command = add(command)
    return command


def goal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what counts."""
    for add in (
        click.option("--reach", type=float, default=None, help="Value to reach: at least for cosine, else at most."),
        click.option("--on-output", default="", help="Output it is judged on; default the worst."),
        click.option("--metric", type=click.Choice(METRICS), default="cosine", show_default=True, help="What counts."),
    ):
        command = add(command)
    return command


def report_refusal(session: Session, result: Any, code: int) -> int:
    """Print why a stage said no; returns `code`."""
    if session.json:
        session.output.emit(message_to_plain(result))
        return code
    session.output.failure(_convert.to_failure(result.failure))
    print_findings(session.output, result.findings)
    return code
