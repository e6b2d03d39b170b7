"""What the service costs over doing it by hand: one job of two variants against the same two compiles in a row.

    BOARDLIFT_TOOLCHAIN=... python benchmarks/service_overhead.py [--rounds 1] [--no-board]

Starts a fresh stack, runs the demo's policy as a job (int16 and int8), then runs `hb_mapper makertbin` by hand with the
very models, samples and YAML files of the job, one after the other, on the same machine in the same run. The job also
checks, transforms, simulates, runs on the simulated board and reports; the hand does none of that.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from boardlift.v1 import artifact_pb2, compiler_pb2, job_pb2, job_pb2_grpc
from boardlift_servicekit import channels
from boardlift_servicekit.artifacts import LocalStore, RemoteStore

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples/quadruped_policy"
VARIANTS = ("int16", "int8")


def load_stack() -> Any:
    """Return the module behind `make up`."""
    spec = importlib.util.spec_from_file_location("boardlift_local_stack", ROOT / "deploy/local/stack.py")
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["boardlift_local_stack"] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def build_inputs(folder: Path) -> tuple[Path, Path]:
    """Build the demo's policy and dataset."""
    model, data = folder / "policy.onnx", folder / "data.npz"
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([sys.executable, str(EXAMPLE / "build_policy.py"), "--out", str(model)], **quiet)  # type: ignore[call-overload]
    command = [str(Path(sys.executable).parent / "boardlift"), "dataset", "steps"]
    command += [*sorted(str(path) for path in (EXAMPLE / "logs").iterdir()), "--out", str(data)]
    subprocess.run([*command, "--calibration", "64", "--heldout", "128"], **quiet)  # type: ignore[call-overload]
    return model, data


async def run_job(address: str, folder: Path, inputs: tuple[Path, Path], board: bool) -> tuple[float, Any, RemoteStore]:
    """Run the job; returns its wall time in seconds as the client sees it, the ended job, and the store."""
    channel = channels.connect(address)
    store = RemoteStore(channel, LocalStore(folder / "client"))
    variants = [compiler_pb2.VariantSpec(name=name, preset=name) for name in VARIANTS]
    start = time.monotonic()
    spec = job_pb2.JobSpec(target="rdk-x5", variants=variants, skip_board=not board, model_name="policy.onnx")
    spec.model.artifact.CopyFrom(await store.put_file(inputs[0], "application/onnx"))
    spec.dataset.CopyFrom(await store.put_file(inputs[1], "application/x-npz"))
    spec.transform.outputs.append("actions")
    stub = job_pb2_grpc.JobServiceStub(channel)
    job = (await stub.CreateJob(job_pb2.CreateJobRequest(spec=spec), timeout=60)).job
    async for event in stub.WatchJob(job_pb2.WatchJobRequest(job_id=job.id), timeout=1800):
        job = event.job if event.HasField("job") else job
    seconds = time.monotonic() - start
    if job.state != job_pb2.Job.STATE_SUCCEEDED:
        raise SystemExit(f"the job failed: {job.error}")
    return seconds, job, store


async def prepare_by_hand(report: dict[str, Any], store: RemoteStore, folder: Path) -> list[Path]:
    """Lay out each variant's compile as somebody would by hand: model, raw samples, YAML."""
    folders = []
    for variant in report["variants"]:
        place = folder / f"hand-{variant['name']}-{len(list(folder.iterdir()))}"
        samples = place / "calibration0_float32"
        samples.mkdir(parents=True)
        transform = variant["transform"]
        model = await store.fetch(artifact_pb2.ArtifactRef(sha256=transform["model"]["sha256"]))
        (place / "model.onnx").write_bytes(model.read_bytes())
        (place / "config.yaml").write_text(variant["compile"]["yaml"])
        data = np.load(await store.fetch(artifact_pb2.ArtifactRef(sha256=transform["calibration"]["sha256"])))
        name = transform["io_map"][0]["after"]["name"]
        for index, sample in enumerate(data[name]):
            (samples / f"{index:06d}.bin").write_bytes(np.ascontiguousarray(sample, dtype=np.float32).tobytes())
        folders.append(place)
    return folders


def compile_by_hand(folders: list[Path], toolchain: Path) -> float:
    """Run the vendor's command in each folder, one after another; returns the wall time in seconds."""
    start = time.monotonic()
    for folder in folders:
        command = [str(toolchain / "bin/hb_mapper"), "makertbin", "-c", "config.yaml", "--model-type", "onnx"]
        environment = {"PATH": f"{toolchain}/bin:/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        if done.returncode or not list(folder.glob("out/*.bin")):
            raise SystemExit(f"by hand it failed: {done.stdout.decode()[-2000:]}")
    return time.monotonic() - start


def stage_seconds(job: Any) -> dict[str, float]:
    """Return the wall time of each stage."""
    found = {}
    for stage in job.stages:
        if stage.HasField("end_time"):
            name = f"{stage.stage} {stage.variant}".strip()
            found[name] = (stage.end_time.ToNanoseconds() - stage.start_time.ToNanoseconds()) / 1e9
    return found


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Do all rounds, each on a fresh stack; returns the figures."""
    module = load_stack()
    rounds = []
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            inputs = build_inputs(folder)
            with module.running(module.Stack(folder / "state", module.free_ports())) as stack:
                job_s, job, store = await run_job(stack.address("orchestrator"), folder, inputs, arguments.board)
                files = {item.name: item.artifact for item in job.artifacts}
                report = json.loads((await store.fetch(files["report.json"])).read_bytes())
                places = await prepare_by_hand(report, store, folder)
            hand_s = compile_by_hand(places, module.toolchain_folder())
        stages = stage_seconds(job)
        compiles = [value for key, value in stages.items() if key.startswith("compile ")]
        rounds.append(
            {"job_s": job_s, "hand_s": hand_s, "ratio": job_s / hand_s, "compiles_s": compiles, "stages_s": stages}
        )
    return {"kind": "measured", "board": arguments.board, "rounds": rounds}


def main() -> None:
    """Print one JSON object and one line per round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-board", dest="board", action="store_false", help="leave the board stage out")
    figures = asyncio.run(measure(parser.parse_args()))
    print(json.dumps(figures, indent=1))
    for item in figures["rounds"]:
        print(f"job {item['job_s']:.1f} s, by hand {item['hand_s']:.1f} s, ratio {item['ratio']:.2f}")


if __name__ == "__main__":
    main()
