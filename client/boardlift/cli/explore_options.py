"""What the commands that explore a model share: options, the transform before, and how a refusal is reported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from boardlift import _convert
from boardlift._requests import RunOptions, transform_spec, variant_spec
from boardlift.cli.parse import data_path, parse_freeze, parse_input_format, parse_shapes, split_names
from boardlift.cli.session import Session
from boardlift.cli.stage_output import StageLines, print_findings
from boardlift.explore import ExploreClient, PreparedForms
from boardlift.message_json import message_to_plain
from boardlift.models import Variant
from boardlift.v1 import compiler_pb2, transform_pb2

METRICS = ("cosine", "max_abs", "mean_abs", "rmse", "p99_abs")


@dataclass(frozen=True)
class Exploration:
    """What is explored and how the model gets ready for it."""

    model: Path
    """The user's model."""
    data: str
    """Dataset, .npz."""
    outputs: tuple[str, ...] = ()
    """Outputs to keep."""
    shapes: tuple[str, ...] = ()
    """Shapes of inputs with open dimensions."""
    target: str = "rdk-x5"
    """Chip and toolchain."""
    frozen: tuple[str, ...] = ()
    """Inputs that become constants."""
    skip_passes: tuple[str, ...] = ()
    """Transform passes that must not run in any form."""
    inputs: tuple[str, ...] = ()
    """Forms of inputs that are not plain tensors."""

    @property
    def spec(self) -> transform_pb2.TransformSpec:
        """How the model is transformed."""
        options = RunOptions(
            target=self.target,
            outputs=split_names(self.outputs),
            input_shapes=parse_shapes(self.shapes),
            skip_passes=split_names(self.skip_passes),
            freeze=parse_freeze(self.frozen),
        )
        spec = transform_spec(options)
        spec.normalised_inputs.extend(
            transform_pb2.InputNormalisation(name=i.name, mean=i.mean_value, scale=i.scale_value, layout=i.layout_train)
            for i in self.input_specs
            if i.mean_value or i.scale_value
        )
        return spec

    @property
    def input_specs(self) -> list[compiler_pb2.InputSpec]:
        """How the inputs are fed."""
        formats = tuple(parse_input_format(text) for text in self.inputs)
        return list(variant_spec(Variant("int8", inputs=formats)).inputs)

    def prepare(
        self, session: Session, client: ExploreClient, without: Sequence[str] = (), extra: Sequence[str] = ()
    ) -> PreparedForms:
        """Transform the model into its forms."""
        lines = StageLines(session.output, "transform")
        return client.prepare_forms(self.model, data_path(self.data), self.spec, without, extra, lines)


def exploration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add MODEL and the options that say how it gets ready; the command takes one `exploration` for all of them."""
    names = [item.name for item in fields(Exploration)]

    @functools.wraps(command)
    def gather(*arguments: Any, **given: Any) -> Any:
        exploration = Exploration(**{name: given.pop(name) for name in names})
        return command(*arguments, exploration=exploration, **given)

    for add in (
        click.option("--target", default="rdk-x5", show_default=True, help="Chip and toolchain."),
        click.option("--skip-pass", "skip_passes", multiple=True, help="Transform pass that must not run at all."),
        click.option("--input", "inputs", multiple=True, help="Form of an input: NAME:type_train=rgb,type_rt=nv12,..."),
        click.option("--freeze", "frozen", multiple=True, help="Input that never changes, needs no samples: sr=16000."),
        click.option(
            "--input-shape", "shapes", multiple=True, help="Shape of an input with open dimensions: obs=1x225."
        ),
        click.option("--outputs", multiple=True, help="Outputs to keep; default all."),
        click.option("--data", required=True, help="Dataset .npz; split into calibration and held-out samples."),
        click.argument("model", type=click.Path(path_type=Path)),
    ):
        gather = add(gather)
    return gather


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
