"""`boardlift-transform explain|inspect|apply|passes`: the transform on this machine, without any server.

Exit codes as a linter's: 0 nothing to object, 1 the model is refused or not equal, 2 the command line is wrong.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from boardlift_transform.edit_graph import Array
from boardlift_transform.inspect import summarise
from boardlift_transform.load_model import load_model
from boardlift_transform.passes import PASSES
from boardlift_transform.plan import plan
from boardlift_transform.record_steps import StepRecorder
from boardlift_transform.refusal import Refusal
from boardlift_transform.render_text import plain, plan_text, refusal_text, result_data, result_text, summary_text
from boardlift_transform.request import Request
from boardlift_transform.runner import run_plan
from boardlift_transform.targets import find_target

if TYPE_CHECKING:
    from boardlift_transform.transform_model import TransformResult

REFUSED = 1


def _request_options(command: Any) -> Any:
    """Options that make a request."""
    for option in reversed(
        (
            click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
            click.option("--target", default="rdk-x5", show_default=True, help="Chip and toolchain."),
            click.option("--outputs", default="", help="Outputs to keep, with commas between; default all."),
            click.option("--input-shape", "shapes", multiple=True, help="Shape of an input: obs=1x225."),
            click.option("--freeze", "frozen", multiple=True, help="Input that never changes: sr=16000 (JSON)."),
            click.option("--pass", "passes", multiple=True, help="Pass to run, in order; default the plan's."),
            click.option("--skip-pass", "skipped", multiple=True, help="Pass that must not run."),
            click.option("--precision", type=click.Choice(["int8", "int16"]), help="Precision it is meant for."),
            click.option("--opset", type=int, default=0, help="Opset to end at; default the target's."),
            click.option("--keep-foreign", is_flag=True, help="Keep operators of foreign domains."),
            click.option("--diff", is_flag=True, help="Print the nodes that each pass adds, removes and rewrites."),
            click.option(
                "--keep-steps",
                type=click.Path(file_okay=False, path_type=Path),
                help="Folder for the model before and after each pass, for viewers.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        )
    ):
        command = option(command)
    return command


def _request(options: dict[str, Any]) -> Request:
    try:
        shapes = {name: tuple(int(d) for d in dims.split("x")) for name, dims in _pairs(options["shapes"])}
        frozen = {name: json.loads(value) for name, value in _pairs(options["frozen"])}
    except ValueError as error:
        raise click.UsageError(f"write shapes as obs=1x225 and values as sr=16000: {error}") from error
    return Request(
        outputs=tuple(o for o in options["outputs"].split(",") if o),
        input_shapes=shapes,
        frozen_inputs=frozen,
        passes=tuple((p, {}) for p in options["passes"]),
        skip_passes=tuple(options["skipped"]),
        precision=options["precision"] or "",
        opset=options["opset"],
        keep_foreign_domains=options["keep_foreign"],
    )


def _pairs(items: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [item.partition("=") for item in items]
    if any(not separator for _, separator, _ in pairs):
        raise ValueError("a '=' is missing")
    return [(name, value) for name, _, value in pairs]


def _refuse(context: click.Context, refusal: Refusal, as_json: bool) -> None:
    click.echo(json.dumps({"refusals": [plain(refusal)]}, indent=2) if as_json else refusal_text(refusal))
    context.exit(REFUSED)


@click.group()
def main() -> None:
    """Bring ONNX models into the form that a board's toolchain takes, and prove that they compute the same."""


@main.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def inspect(context: click.Context, model: Path, as_json: bool) -> None:
    """Say what MODEL is."""
    try:
        loaded = load_model(model)
        found = summarise(loaded.to_ir(), loaded.sha256)
    except Refusal as refusal:
        return _refuse(context, refusal, as_json)
    click.echo(json.dumps(plain(found), indent=2) if as_json else summary_text(found))


@main.command()
@_request_options
@click.pass_context
def explain(
    context: click.Context,
    /,
    model: Path,
    target: str,
    as_json: bool,
    diff: bool,
    keep_steps: Path | None,
    **options: Any,
) -> None:
    """Say what would be done to MODEL, why, and what is refused; changes and proves nothing."""
    request = _request(options)
    try:
        profile = find_target(target)
        loaded = load_model(model)
        working = loaded.to_ir()
        chosen = plan(profile, summarise(working, loaded.sha256), request)
        recorder = StepRecorder(working, keep_steps) if diff or keep_steps else None
        reports = [] if chosen.refusals else run_plan(working, chosen.passes, recorder=recorder)
    except Refusal as refusal:
        return _refuse(context, refusal, as_json)
    if as_json:
        steps = [
            {**plain(step), "dry_run": plain(reports[i]) if i < len(reports) else None}
            for i, step in enumerate(chosen.passes)
        ]
        click.echo(json.dumps({"passes": steps, "refusals": plain(chosen.refusals)}, indent=2))
    else:
        click.echo(plan_text(chosen, dict(enumerate(reports)), with_diff=diff))
    context.exit(REFUSED if chosen.refusals else 0)


@main.command()
@_request_options
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the result here.")
@click.option(
    "--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Samples (.npz) for the proof."
)
@click.option("--snippet", is_flag=True, help="Print Python that feeds and reads the result.")
@click.pass_context
def apply(
    context: click.Context,
    /,
    model: Path,
    target: str,
    as_json: bool,
    out: Path | None,
    data: Path | None,
    snippet: bool,
    diff: bool,
    keep_steps: Path | None,
    **options: Any,
) -> None:
    """Transform MODEL, prove it equal, write it."""
    from boardlift_transform.transform_model import transform_loaded

    request = _request(options)
    if out is not None and not out.parent.is_dir():
        raise click.UsageError(f"there is no folder {out.parent} to write to")
    try:
        result = transform_loaded(load_model(model), target, request, _samples(data), diff=diff, keep_steps=keep_steps)
        if out is not None:
            _save(result, out)
    except Refusal as refusal:
        return _refuse(context, refusal, as_json)
    click.echo(json.dumps(result_data(result), indent=2) if as_json else result_text(result, with_diff=diff))
    if snippet:
        click.echo(result.snippet)


def _save(result: TransformResult, out: Path) -> None:
    """Write the model as a whole or not at all."""
    partial = out.with_name(out.name + ".partial")
    try:
        result.save(partial)
        partial.replace(out)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        text = f"cannot write {out.name}: {error.strerror}"
        raise Refusal("OUT_NOT_WRITABLE", text, remedy="free space there, or name another file") from error


def _samples(path: Path | None) -> dict[str, Array] | None:
    if path is None:
        return None
    try:
        with np.load(path, allow_pickle=False) as loaded:
            return {name: loaded[name] for name in loaded.files if not name.endswith(".json")}
    except (OSError, ValueError) as error:
        raise Refusal("DATASET_UNREADABLE", f"{path.name} is no .npz of arrays: {error}") from error


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def passes(as_json: bool) -> None:
    """List the passes."""
    if as_json:
        rows = [
            {"id": p.id, "summary": p.summary, "exactness": p.exactness, "parameters": plain(p.parameters)}
            for p in PASSES
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    for item in PASSES:
        click.echo(f"{item.id:22s} {item.exactness:15s} {item.summary}")
        for parameter in item.parameters:
            click.echo(f"    {parameter.name}: {parameter.description}")


if __name__ == "__main__":
    main()
