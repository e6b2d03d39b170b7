"""`boardlift compile`: one or several builds by the compiler service alone, also from an existing makertbin YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from boardlift import _convert
from boardlift._model_inputs import read_input_shapes
from boardlift._outcome import FAIL, INFRASTRUCTURE, INPUT_WRONG, PASS
from boardlift._requests import variant_spec
from boardlift.cli.compile_output import print_compile
from boardlift.cli.out_path import OUT_FOLDER
from boardlift.cli.output import size_text
from boardlift.cli.parse import build_variants, data_path
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines, print_findings
from boardlift.compile_model import (
    CompileClient,
    TakenSamples,
    check_folder,
    fit_names,
    locate_model,
    name_inputs,
    read_folders,
    save_inputs,
)
from boardlift.errors import InvalidInputError
from boardlift.message_json import message_to_plain
from boardlift.models import Finding
from boardlift.v1 import artifact_pb2, compiler_pb2, toolchain_pb2

_LEVELS = click.Choice(["O0", "O1", "O2", "O3"])
_METHODS = click.Choice(["default", "mix", "kl", "max", "skip"])
_ERROR = toolchain_pb2.Finding.SEVERITY_ERROR
# Refusals that the transform stage cures although no single pass carries the failure.
_CURED = ("OPSET_TOO_HIGH", "IR_VERSION_TOO_HIGH", "DYNAMIC_SHAPE", "EXTERNAL_DATA")
_NOT_WITH_YAML = ("variants", "inputs", "calibration", "percentile", "per_channel", "level", "purpose")


@dataclass
class Build:
    """What is to be compiled."""

    model: Path
    """Model as the vendor's tool takes it."""
    variants: list[compiler_pb2.VariantSpec]
    """Ways to compile it."""
    samples: TakenSamples
    """Calibration samples."""
    findings: list[Finding] = field(default_factory=list)
    """What the lint of the YAML found."""


@click.command(name="compile", cls=Command, short_help="Compile MODEL without a job: no proof, no board.")
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--yaml", type=click.Path(path_type=Path), help="Existing makertbin YAML, taken as it is.")
@click.option("--data", default="", help="Dataset .npz to calibrate with; with --yaml default its folders.")
@click.option(
    "--variant", "variants", multiple=True, help="int8 (default), int16, mixed, ..., or NAME=PRESET,key=value."
)
@click.option("--input", "inputs", multiple=True, help="Form of an input: NAME:type_train=rgb,type_rt=nv12,...")
@click.option("--calibration", type=_METHODS, default=None, help="Calibration method.")
@click.option("--percentile", type=float, default=0.0, help="Percentile for --calibration max.")
@click.option("--per-channel", is_flag=True, help="Quantise per channel.")
@click.option("--level", type=_LEVELS, default=None, help="Optimise level.")
@click.option("--purpose", type=click.Choice(["preview", "search", "release"]), default=None, help="Chooses the level.")
@click.option("--target", default="rdk-x5", show_default=True, help="Chip and toolchain.")
@click.option("-o", "--out", type=OUT_FOLDER, help="Save the result's files here.")
@click.option("--lint", "only_lint", is_flag=True, help="Check the YAML and stop.")
@click.option("--plan", is_flag=True, help="Check everything and print the tool's YAML; nothing is compiled.")
@click.option("--all", "every_node", is_flag=True, help="List every node of a large model.")
@pass_session
def compile_(session: Session, model: Path | None, yaml: Path | None, only_lint: bool, **given: Any) -> int:
    """Compile MODEL, which must need no transform, without a job: no proof against your model, no board, no verdict.

    With --yaml an existing makertbin YAML is linted and built as it is; the model and the calibration folders it names
    are read here, on this machine.
    """
    _check_usage(model, yaml, only_lint, given)
    with CompileClient(session.connection) as client:
        answer = client.convert_config(yaml) if yaml else None
        if answer is not None and (only_lint or not answer.HasField("variant")):
            return _print_lint(session, answer)
        build = _from_yaml(model, yaml, answer, given["data"]) if yaml and answer else _from_options(model, given)
        if not session.json:
            session.output.findings([*build.findings, *build.samples.findings])
        return _compile_all(session, client, build, answer, given)


def _check_usage(model: Path | None, yaml: Path | None, only_lint: bool, given: dict[str, Any]) -> None:
    problem = ""
    if yaml is None and only_lint:
        problem = "--lint checks a YAML; there is none."
    elif yaml is None and model is None:
        problem = "Neither MODEL nor --yaml is given."
    elif yaml is not None and any(given[name] for name in _NOT_WITH_YAML):
        problem = "A YAML is taken as it is; options that say how to compile can't go with --yaml."
    elif yaml is None and not given["data"] and given["calibration"] != "skip":
        problem = "There are no samples to calibrate with: --data is missing."
    if problem:
        raise InvalidInputError(problem, reason="USAGE", remedy="See `boardlift compile --help`.")


def _print_lint(session: Session, answer: compiler_pb2.ConvertConfigResponse) -> int:
    usable = answer.HasField("variant")
    code = PASS if usable else INPUT_WRONG
    if session.json:
        session.output.emit({"config": message_to_plain(answer), "exit_code": code})
        return code
    print_findings(session.output, answer.findings)
    session.output.line("Usable." if usable else "Not usable.", "bold green" if usable else "bold red")
    return code


def _from_yaml(model: Path | None, yaml: Path, answer: compiler_pb2.ConvertConfigResponse, data: str) -> Build:
    found = model or locate_model(yaml, answer)
    shapes = read_input_shapes(found)
    name_inputs(answer.variant, shapes)
    samples = _read_data(data, found) if data else read_folders(yaml, answer, shapes)
    return Build(found, [answer.variant], samples, [_convert.to_finding(f) for f in answer.findings])


def _from_options(model: Path | None, given: dict[str, Any]) -> Build:
    if model is None:
        raise InvalidInputError("MODEL is missing.", reason="USAGE", remedy="See `boardlift compile --help`.")
    variants = build_variants(
        given["variants"] or ("int8",),
        given["inputs"],
        calibration=given["calibration"] or "",
        percentile=given["percentile"],
        per_channel=given["per_channel"],
        level=given["level"] or "",
        purpose=given["purpose"] or "",
    )
    samples = _read_data(given["data"], model) if given["data"] else TakenSamples()
    return Build(model, [variant_spec(variant) for variant in variants], samples)


def _read_data(data: str, model: Path) -> TakenSamples:
    from boardlift.datasets import read_dataset

    return fit_names(read_dataset(data_path(data)), model)


def _compile_all(
    session: Session,
    client: CompileClient,
    build: Build,
    answer: compiler_pb2.ConvertConfigResponse | None,
    given: dict[str, Any],
) -> int:
    dataset, out = build.samples.dataset, given["out"]
    folders = {v.name: out / v.name if len(build.variants) > 1 else out for v in build.variants} if out else {}
    for folder in folders.values():
        check_folder(folder, build.model)
    model = client.push(build.model)
    samples = client.push_samples(dataset) if dataset is not None else artifact_pb2.ArtifactRef()
    codes, plain = [], []
    for variant in build.variants:
        request = compiler_pb2.CompileModelRequest(
            model=model, target=given["target"], variant=variant, validate_only=given["plan"]
        )
        if dataset is not None:
            request.calibration.CopyFrom(samples)
        result = client.compile(request, StageLines(session.output, f"compile {variant.name}"))
        point_to_transform(result, build.model)
        wanted = bool(out) and not given["plan"]
        saved = client.save(result, variant.name, folders[variant.name]) if wanted else []
        again = _make_rebuildable(client, build, saved)
        codes.append(_exit_code(result))
        plain.append({"variant": variant.name, "result": message_to_plain(result), "files": [str(p) for p in saved]})
        if not session.json:
            _report(session, variant.name, result, saved, given)
            if again:
                session.output.line(f"Build it again: boardlift compile --yaml {again}")
    code = max(codes)
    if session.json:
        config = message_to_plain(answer) if answer is not None else None
        session.output.emit({"config": config, "samples": build.samples.findings, "variants": plain, "exit_code": code})
    return code


def _make_rebuildable(client: CompileClient, build: Build, saved: list[Path]) -> Path | None:
    """Put model and samples beside the saved config.yaml; returns it."""
    config = next((path for path in saved if path.name == "config.yaml"), None)
    if config is not None:
        save_inputs(client.convert_config(config), build.model, build.samples.dataset, config.parent)
    return config


def _report(
    session: Session, name: str, result: compiler_pb2.CompileResult, saved: list[Path], given: dict[str, Any]
) -> None:
    output = session.output
    if result.HasField("failure"):
        output.line(f"{name}: refused", "bold red")
        output.failure(_convert.to_failure(result.failure))
        print_findings(output, result.findings)
    elif given["plan"]:
        output.line(f"{name}: nothing stands against it; the tool would get", "bold")
        output.line(result.yaml)
        print_findings(output, result.findings)
    else:
        output.line(f"{name}: compiled", "bold green" if _exit_code(result) == PASS else "bold yellow")
        print_compile(output, result, given["every_node"])
    for path in saved:
        output.line(f"{path}  {size_text(path.stat().st_size)}")
    if not saved and not given["plan"] and not result.HasField("failure"):
        output.line("Not saved; give --out DIR.")


def _exit_code(result: compiler_pb2.CompileResult) -> int:
    """Return 0 built as asked, 1 built but not as asked, 2 the input was refused, 3 the machinery failed."""
    if result.HasField("failure"):
        return INPUT_WRONG if result.failure.user_fault else INFRASTRUCTURE
    return FAIL if any(finding.severity == _ERROR for finding in result.findings) else PASS


def point_to_transform(result: compiler_pb2.CompileResult, model: Path) -> None:
    """Have the remedy of a refusal that the transform stage cures name the commands that do so."""
    failure = result.failure
    if not failure.transform_pass and failure.code not in _CURED:
        return
    by = f" (pass {failure.transform_pass})" if failure.transform_pass else ""
    failure.remedy = (
        f"Transform it first{by}: boardlift transform {model.name} --out lifted.onnx; or let"
        f" `boardlift run {model.name} --data DATA.npz` do everything. Otherwise: {failure.remedy}"
    )
