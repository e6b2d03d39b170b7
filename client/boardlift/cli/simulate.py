"""`boardlift simulate`: run a build on samples, judge it against the user's model, compare its code bit by bit."""

from __future__ import annotations

from pathlib import Path

import click

from boardlift import _convert
from boardlift._outcome import FAIL, INPUT_WRONG, PASS, UNDECIDED
from boardlift._render import figure_text
from boardlift.cli.explore_options import Exploration, exploration_options, report_refusal
from boardlift.cli.out_path import OUT_FILE
from boardlift.cli.output import Output
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines, print_findings
from boardlift.explore import ExploreClient
from boardlift.message_json import message_to_plain
from boardlift.v1 import compiler_pb2, toolchain_pb2

SHOWN = ("cosine", "cosine_min", "max_abs", "mean_abs", "rmse", "sqnr_db")
_ERROR = toolchain_pb2.Finding.SEVERITY_ERROR
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(cls=Command, short_help="Simulate a build of MODEL on samples, without a board.")
@exploration_options
@click.option("--compiled", type=_FILE, required=True, help="Compiled model, .bin.")
@click.option("--quantized", type=_FILE, required=True, help="Quantised model of the same build, .onnx.")
@click.option(
    "--bit-check-samples", type=click.IntRange(0, 64), default=0, help="Samples compared bit by bit; default 4."
)
@click.option("-o", "--out", type=OUT_FILE, help="Save the quantised outputs, .npz.")
@pass_session
def simulate(
    session: Session,
    exploration: Exploration,
    compiled: Path,
    quantized: Path,
    bit_check_samples: int,
    out: Path | None,
) -> int:
    """Simulate a build of MODEL on its held-out samples, without a board.

    The quantised model is compared with stock onnxruntime on MODEL itself, the compiled code with the quantised model
    at every BPU subgraph's border. Give the options that the build was made with: --outputs, --freeze, --input, ...
    """
    with ExploreClient(session.connection) as client:
        prepared = exploration.prepare(session, client)
        if prepared.refused is not None:
            return report_refusal(session, prepared.refused, INPUT_WRONG)
        form = prepared.forms[0]
        request = compiler_pb2.SimulateModelRequest(
            quantized_model=client.push(quantized),
            compiled_model=client.push(compiled),
            heldout=form.heldout,
            reference_outputs=form.reference_outputs,
            bit_check_samples=bit_check_samples,
            inputs=exploration.input_specs,
        )
        result = client.simulate(request, StageLines(session.output, "simulate"))
        if result.HasField("failure"):
            if result.failure.code == "COMPILED_MODEL_UNREADABLE":  # here it is the user's file, in a job our own
                result.failure.subject, result.failure.user_fault = str(compiled), True
            return report_refusal(session, result, INPUT_WRONG if result.failure.user_fault else FAIL)
        if out is not None:
            client.fetch(result.quantized_outputs, out)
            session.output.note(f"saved {out}")
    if session.json:
        session.output.emit(message_to_plain(result))
    else:
        print_simulation(session.output, result)
    return exit_code(result)


def exit_code(result: compiler_pb2.SimulateResult) -> int:
    """Return PASS, FAIL for bits that differ or a finding that is an error, UNDECIDED where bits were not compared."""
    differs = any(not b.equal and not b.not_compared for b in result.bit_checks)
    if differs or any(f.severity == _ERROR for f in result.findings):
        return FAIL
    return PASS if result.bit_exact else UNDECIDED


def print_simulation(output: Output, result: compiler_pb2.SimulateResult) -> None:
    """Print errors per output and what the bit check found."""
    figures = [(o, f) for o in result.outputs for f in o.figures if f.name in SHOWN]
    rows = [(o.output, str(o.samples), f.name, figure_text(_convert.to_figure(f))) for o, f in figures]
    output.table(("output", "samples", "against your model", "value"), rows)
    output.line()
    checks = [
        (
            check.subgraph,
            check.tensor,
            str(check.samples),
            "not compared" if check.not_compared else "equal" if check.equal else "differs",
            "" if check.equal or check.not_compared else f"{check.different_elements}, by up to {check.max_difference}",
            check.not_compared or check.first_difference,
        )
        for check in result.bit_checks
    ]
    output.table(("compiled code of", "tensor", "samples", "bits", "elements, steps", "where first"), checks)
    output.line(f"bit exact: {'yes' if result.bit_exact else 'no'} (simulated)")
    print_findings(output, result.findings)
