"""`boardlift samples`: the held-out samples of a job, to run one's own code on them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from boardlift._convert import to_artifact
from boardlift._stage_results import StageResults
from boardlift._user_arrays import save_arrays
from boardlift.cli.out_path import OUT_FOLDER
from boardlift.cli.output import size_text
from boardlift.cli.session import Command, Session, pass_session
from boardlift.client import Client
from boardlift.errors import PreconditionError
from boardlift.v1 import artifact_pb2, job_pb2, toolchain_pb2


@click.command(cls=Command, short_help="Save the samples that JOB was proven on, with the answers.")
@click.argument("job_id", metavar="JOB")
@click.option("-o", "--out", required=True, type=OUT_FOLDER, help="Save the files here.")
@click.option("--variant", default="", help="Variant whose form and outputs are wanted; default the first.")
@pass_session
def samples(session: Session, job_id: str, out: Path, variant: str) -> int:
    """Save the samples that JOB was proven on, and what the models answer to them.

    inputs.npz has them as your own model takes them (pixels raw, before mean and scale of --input), compiled_inputs.npz
    as the compiled one does (float, before its layout and picture format); float_outputs.npz and quantised_outputs.npz
    are the answers of your model and of the quantised one. All arrays are [N, ...] in the same order.
    """
    with session.client() as client:
        job = client._call(client._jobs.GetJob, job_pb2.GetJobRequest(job_id=job_id)).job
        names = [item.name for item in job.spec.variants]
        chosen = variant or names[0]
        if chosen not in names:
            raise click.UsageError(f"job {job_id} has no variant {chosen}; it has {', '.join(names)}")
        results = StageResults(job, client.fetch_bytes)
        transform = results.transform(chosen)
        wanted = {
            "inputs.npz": results.ingest().heldout,
            "compiled_inputs.npz": transform.heldout,
            "float_outputs.npz": transform.reference_outputs,
            "quantised_outputs.npz": results.simulated(chosen).quantized_outputs,
        }
        if not any(ref.sha256 for ref in wanted.values()):
            raise PreconditionError(
                f"Job {job_id} has no held-out samples yet, or its dataset was refused.",
                reason="NO_SAMPLES",
                remedy=f"See how far it is: boardlift jobs show {job_id}",
            )
        saved = [_save(client, ref, out / name) for name, ref in wanted.items() if ref.sha256]
    tensors = [(entry.before, entry.after) for entry in transform.io_map]
    if session.json:
        session.output.emit({"variant": chosen, "files": [str(path) for path in saved]})
        return 0
    rows = [(_tensor(yours), _tensor(compiled)) for yours, compiled in tensors]
    session.output.table(("tensor of your model", "of the compiled model"), rows)
    for path in saved:
        session.output.line(f"{path}  {size_text(path.stat().st_size)}")
    session.output.line(f"Then: boardlift diagnose {job_id} --variant {chosen} --user-outputs MINE.npz")
    return 0


def _save(client: Client, ref: artifact_pb2.ArtifactRef, path: Path) -> Path:
    """Save the arrays alone: a dataset's description is nothing that `numpy.load` should hand to people's code."""
    from boardlift.npz import read_npz

    with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
        save_arrays(path, read_npz(client.fetch(to_artifact(ref), Path(folder) / path.name)))
    return path


def _tensor(spec: toolchain_pb2.TensorSpec) -> str:
    return f"{spec.name} {spec.dtype} {list(spec.shape)}" if spec.name else "not fed any more"
