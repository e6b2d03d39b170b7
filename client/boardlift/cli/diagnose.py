"""`boardlift diagnose`: why a variant's outputs are wrong, settled on a board."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

import click

from boardlift._diagnosis import build_request, choose_variant
from boardlift._outcome import FAIL, PASS
from boardlift._requests import to_ref
from boardlift._stage_results import StageResults
from boardlift._user_arrays import fit_user_arrays
from boardlift.cli.session import Command, Session, pass_session
from boardlift.cli.stage_output import StageLines
from boardlift.client import Client
from boardlift.message_json import message_to_plain
from boardlift.v1 import board_agent_pb2, job_pb2, transform_pb2

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(cls=Command, short_help="Say why the outputs of JOB's model are wrong.")
@click.argument("job_id", metavar="JOB")
@click.option("--variant", default="", help="Variant to look at; default the best one.")
@click.option("--user-outputs", type=_FILE, help="What your code got, .npz by output name, for the held-out samples.")
@click.option("--user-inputs", type=_FILE, help="What your code fed, .npz by input name, for the held-out samples.")
@click.option("--board", default="", help="Have this board do it, through the queue; default any of the job's target.")
@click.option(
    "--agent",
    default="",
    envvar="BOARDLIFT_AGENT",
    help="Dial this board agent, host:port [BOARDLIFT_AGENT]; default: a board pulls the work from the queue.",
)
@click.option("--samples", type=click.IntRange(1, 64), default=4, show_default=True, help="Samples to look at.")
@pass_session
def diagnose(
    session: Session,
    job_id: str,
    variant: str,
    user_outputs: Path | None,
    user_inputs: Path | None,
    board: str,
    agent: str,
    samples: int,
) -> int:
    """Say why the outputs of JOB's model are wrong: in your code, the calibration data, the quantiser, the board.

    The board runs the model on the held-out samples, makes the known mistakes on purpose, and names the one that gives
    exactly what your code got. Exit code 0 when everything agrees, 1 when a cause was found.

    Get the held-out samples by `boardlift samples JOB --out DIR`, run your code on them in that order, and save what it
    got, or fed, as one array [N, ...] per tensor: by the names of your own model or of the compiled one.
    """
    with session.client() as client:
        job = client._call(client._jobs.GetJob, job_pb2.GetJobRequest(job_id=job_id)).job
        chosen, results = choose_variant(job, variant), StageResults(job, client.fetch_bytes)
        request = build_request(job, chosen, results, f"diagnose-{uuid.uuid4().hex[:12]}")
        request.sample_limit = samples
        _add_user_arrays(session, client, results.transform(chosen), request, (user_outputs, user_inputs))
        lines = StageLines(session.output, "diagnose")
        if agent and not board:
            with session.stages(board=agent) as stages:
                result = stages.diagnose(request, lines)
        else:
            result = client.diagnose(request, board=board, on_event=lines)
    if session.json:
        session.output.emit({"job": job_id, "variant": chosen, **message_to_plain(result)})
    else:
        _print(session, chosen, result)
    agrees = not result.HasField("failure") and [d.cause for d in result.diagnoses] == ["consistent"]
    return PASS if agrees else FAIL


def _add_user_arrays(
    session: Session,
    client: Client,
    transform: transform_pb2.TransformResult,
    request: board_agent_pb2.DiagnoseModelRequest,
    files: tuple[Path | None, Path | None],
) -> None:
    """Upload what the user's code got and fed, under the names of the compiled model."""
    sides = transform_pb2.IoMapping.DIRECTION_OUTPUT, transform_pb2.IoMapping.DIRECTION_INPUT
    for path, side, field in zip(files, sides, (request.user_outputs, request.user_inputs), strict=True):
        if path is None:
            continue
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            entries = [entry for entry in transform.io_map if entry.direction == side]
            fitted, renamed = fit_user_arrays(path, entries, Path(folder))
            field.CopyFrom(to_ref(client.push(fitted)))
        for old, new in renamed.items():
            session.output.note(f"{old} of {path.name} is taken for {new}: so the transform has renamed it.")


def _print(session: Session, variant: str, result: board_agent_pb2.DiagnoseResult) -> None:
    line = session.output.line
    kind = "simulated board" if result.board.simulated else "board"
    if result.HasField("failure"):
        line(f"{result.failure.code}: {result.failure.message} {result.failure.remedy}", style="bold red")
        return
    line(f"{variant} on {kind} {result.board.id}")
    for item in result.diagnoses:
        style = "bold green" if item.cause == "consistent" else "bold yellow"
        about = f"  {item.subject}" if item.subject else ""
        line(f"{item.cause}  ({item.stage}, confidence {item.confidence:.2f}){about}", style=style)
        line(f"  {item.message}")
        for fact in item.evidence:
            line(f"  - {fact}")
        line(f"  -> {item.next_step}")
