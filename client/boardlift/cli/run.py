"""`boardlift run`: the whole chain, from a model to a verdict."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from boardlift._job import Job
from boardlift._outcome import UNDECIDED, exit_code
from boardlift._requests import RunOptions, transform_spec
from boardlift._transfer import safe_name
from boardlift.cli.follow import follow
from boardlift.cli.out_path import OUT_FOLDER
from boardlift.cli.parse import build_variants, clean_command, data_path, parse_freeze, parse_shapes, split_names
from boardlift.cli.print_plan import print_plan, refused
from boardlift.cli.print_verdict import print_end
from boardlift.cli.session import Command, Session, pass_session
from boardlift.errors import BoardliftError
from boardlift.models import Gate, Variant, to_plain

_LEVELS = click.Choice(["O0", "O1", "O2", "O3"])
_VARIANT = "int8, int16, mixed, auto, fast-perf, or NAME=PRESET,key=value; default int16 and int8."
_GATE = (
    "Limit, for example 'cosine>=0.99', 'max_abs@actions<=0.2'; no_silent_fallback, bit_exact and "
    "board_matches_simulation are always judged."
)
_METHODS = click.Choice(["default", "mix", "kl", "max", "skip"])


@click.command(cls=Command, short_help="Compile, prove and measure MODEL, and give a verdict.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", required=True, help="Dataset .npz (see `boardlift dataset`).")
@click.option("--variant", "variants", multiple=True, help=_VARIANT)
@click.option("--gate", "gates", multiple=True, help=_GATE)
@click.option("--outputs", multiple=True, help="Outputs to keep; default all.")
@click.option("--input-shape", "shapes", multiple=True, help="Shape of an input with open dimensions: obs=1x225.")
@click.option("--freeze", "frozen", multiple=True, help="Input that never changes, needs no samples: sr=16000.")
@click.option("--input", "inputs", multiple=True, help="Form of an input: NAME:type_train=rgb,type_rt=nv12,...")
@click.option("--calibration", type=_METHODS, default=None, help="Calibration method of all variants.")
@click.option("--percentile", type=float, default=0.0, help="Percentile for --calibration max.")
@click.option("--per-channel", is_flag=True, help="Quantise per channel.")
@click.option("--level", type=_LEVELS, default=None, help="Optimise level of all variants.")
@click.option("--purpose", type=click.Choice(["preview", "search", "release"]), default=None, help="Chooses the level.")
@click.option("--skip-pass", "skip_passes", multiple=True, help="Transform pass that must not run.")
@click.option("--target", default="rdk-x5", show_default=True, help="Chip and toolchain.")
@click.option("--board", default="", help="Board id, or label=value,label=value.")
@click.option("--no-board", is_flag=True, help="Leave the board out; the verdict says so.")
@click.option("--goal", type=click.Choice(["latency", "accuracy"]), default=None, help="What the best variant is.")
@click.option(
    "--calibration-samples", type=click.IntRange(0), default=0, help="Samples to calibrate with; default the dataset's."
)
@click.option(
    "--heldout-samples", type=click.IntRange(0), default=0, help="Samples kept for proof; default the dataset's."
)
@click.option("--seed", type=int, default=0, help="Seed of the draw.")
@click.option("--frames", type=click.IntRange(0), default=0, help="Frames of a latency measurement; default 1000.")
@click.option(
    "--threads", "threads", multiple=True, type=click.IntRange(1, 8), help="Threads to time; default 1 and 2."
)
@click.option(
    "--sustained",
    "sustained_s",
    type=click.FloatRange(0),
    default=0.0,
    help="Seconds under load, with heat and clocks.",
)
@click.option("--governor", default="", help="Clock governor to measure under: performance; boards may refuse it.")
@click.option("--bit-check-samples", type=click.IntRange(0), default=0, help="Samples compared bit by bit; default 4.")
@click.option("--name", default="", help="Name of the job for people.")
@click.option("--priority", type=click.IntRange(-100, 100), default=0, help="Goes before your own waiting jobs below.")
@click.option(
    "--limit", "limit_s", type=click.FloatRange(0), default=0.0, help="Seconds the job may take; default 4 hours."
)
@click.option("--timeout", type=float, default=None, help="Seconds to wait for it here; then the job goes on.")
@click.option("-o", "--out", type=OUT_FOLDER, help="Save the result's files here.")
@click.option("--detach", is_flag=True, help="Print the job's id and return.")
@click.option("--plan", is_flag=True, help="Say what would be done; no job is created, model and samples are uploaded.")
@pass_session
def run(session: Session, model: Path, variants: tuple[str, ...], gates: tuple[str, ...], **given: Any) -> int:
    """Compile MODEL in several ways, prove and measure each, and give a verdict."""
    parsed, data = _variants(variants, given), data_path(given["data"])
    limits = [Gate.parse(gate) for gate in gates]
    options = _options(given, tuple(limits))
    with session.client() as client:
        if given["plan"]:
            return _plan(session, model, data, parsed, options)
        session.output.note(f"pushing {model.name} and {data.name}")
        pushed, dataset = client.push_model(model), client.push_data(data)
        job = client.run(pushed, dataset, parsed, options=replace(options, command=clean_command(sys.argv[1:])))
        if given["detach"]:
            return detached(session, job)
        code = finish(session, job, given["timeout"], heading=f"job {job.id}")
        if given["out"]:
            save_files(session, job, given["out"])
        return code


def finish(session: Session, job: Job, timeout_s: float | None, heading: str = "") -> int:
    """Follow a job to its end, print it, and return the exit code."""
    info = follow(session, job, timeout_s, heading)
    if info is None:
        return UNDECIDED
    if session.json:
        session.output.emit({**to_plain(info), "exit_code": exit_code(info)})
    else:
        print_end(session.output, info)
    return exit_code(info)


def save_files(session: Session, job: Job, folder: Path) -> None:
    """Download all files of a job's result."""
    for name, file in job.artifacts.items():
        file.save(folder / safe_name(name))
    if job.artifacts:
        session.output.note(f"saved {len(job.artifacts)} files in {folder}")


def _variants(texts: tuple[str, ...], given: dict[str, Any]) -> list[Variant]:
    return build_variants(
        texts or ("int16", "int8"),
        given["inputs"],
        calibration=given["calibration"] or "",
        percentile=given["percentile"],
        per_channel=given["per_channel"],
        level=given["level"] or "",
        purpose=given["purpose"] or "",
    )


def _options(given: dict[str, Any], gates: tuple[Gate, ...]) -> RunOptions:
    same = (
        "target",
        "board",
        "skip_passes",
        "seed",
        "frames",
        "threads",
        "sustained_s",
        "governor",
        "name",
        "limit_s",
        "priority",
    )
    counts = ("calibration_samples", "heldout_samples", "bit_check_samples")
    return RunOptions(
        gates=gates,
        outputs=split_names(given["outputs"]),
        input_shapes=parse_shapes(given["shapes"]),
        freeze=parse_freeze(given["frozen"]),
        skip_board=given["no_board"],
        goal=given["goal"] or "",
        **{name: given[name] for name in (*same, *counts)},
    )


def detached(session: Session, job: Job) -> int:
    """Print the id of a job that goes on by itself."""
    if session.json:
        session.output.emit(job.info)
    else:
        session.output.line(job.id)
        session.output.note(f"Follow it: boardlift jobs watch {job.id}")
    return 0


def _plan(session: Session, model: Path, data: Path, variants: list[Variant], options: RunOptions) -> int:
    """Have the servers check the job and say what they would do."""
    with session.client() as client, session.stages() as stages:
        planned_job = client.plan(client.push_model(model), client.push_data(data), variants, options)
        try:
            plan = stages.plan(model, transform_spec(options))
        except BoardliftError as error:
            plan = None
            session.output.note(f"The transform service can't be asked: {error.message}")
    planned = [(step.id, step.exactness, step.reason) for step in plan.passes] if plan else []
    said_no = [*(plan.refusals if plan else ()), *refused(planned_job)]
    refusals = [(item.code, item.subject, item.message) for item in said_no]
    names = [variant.name for variant in variants]
    if session.json:
        plain = {"passes": planned, "refusals": refusals, "variants": names}
        session.output.emit({"plan": to_plain(planned_job), **plain})
        return 2 if refusals else 0
    session.output.line(f"{model.name} -> {options.target}: {', '.join(names)}", "bold")
    print_plan(session.output, planned_job, with_board=not options.skip_board)
    if planned:
        session.output.line(
            f"{len(planned)} transform passes would look at the model: boardlift transform {model} --explain"
        )
    for item in said_no:
        where = f" [{item.subject}]" if item.subject else ""
        session.output.line(f"error {item.code}{where}: {item.message}", "bold red")
        if item.remedy:
            session.output.line(f"    remedy: {item.remedy}")
    for text in plan.assumptions if plan else ():
        session.output.line(f"assumed: {text}")
    session.output.line("No job was created; model and samples lie on the server, where the job would find them.")
    return 2 if refusals else 0
