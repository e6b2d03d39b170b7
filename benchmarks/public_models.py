"""Public trained models through transform and compile, in int8 and int16: a right result, or a right named reason.

    BOARDLIFT_TOOLCHAIN=DIR python benchmarks/public_models.py MODELS_DIR [--only TEXT ...] [--samples 8]

MODELS_DIR holds a folder per model, ``MODELS.csv`` (id, file) and ``gen_inputs.py`` (``make_inputs``, ``CHAIN``). All
samples but two calibrate (method max), two are held out; recurrent states are chained over all of them with stock
onnxruntime, whose outputs on the user's own file are the reference. Scalars that never change are frozen. Prints one
line per model and precision: nodes on the BPU and the CPU, subgraphs, latency (estimated by the vendor's compiler), and
the cosine of every output, quantised model against reference over the held-out samples (simulated); the worst is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model
from boardlift_compiler.run_folder import RunFolder, run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.simulate_outcome import SimulateOutcome
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec
from boardlift_compiler.toolchain import Toolchain, probe_toolchain
from boardlift_transform import Refusal, TransformResult, transform
from boardlift_transform.map_dataset import map_inputs, map_references

ROOT = Path(__file__).resolve().parents[1]
TOOLCHAIN = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
HELD_OUT = 2
LARGE = ("ppocr", "yolox")
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """One model with samples and reference."""

    name: str
    path: Path
    samples: Arrays
    reference: list[Arrays]
    frozen: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Row:
    """What became of one model in one precision."""

    model: str
    precision: str
    result: str
    """``built``, or the stage that said no and its code."""
    passes: int = 0
    bpu: int = 0
    cpu: str = ""
    subgraphs: int = 0
    latency_us: float = 0.0
    cosine: float = 0.0
    worst_output: str = ""
    findings: str = ""
    """Findings that fail the variant's gate by default, with their counts."""
    note: str = ""
    wall_s: float = 0.0


def load_generator(folder: Path) -> Any:
    """Return the module that makes the inputs."""
    spec = importlib.util.spec_from_file_location("gen_inputs", folder / "gen_inputs.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{folder} holds no gen_inputs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_subject(name: str, path: Path, generator: Any, count: int) -> Subject:
    """Make samples and run the user's own file on them, states chained."""
    onnxruntime.set_default_logger_severity(3)  # files that list weights as inputs bring a page of warnings
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    chain = generator.CHAIN.get(name, {})
    outputs = [o.name for o in session.get_outputs()]
    feeds: list[Arrays] = []
    reference: list[Arrays] = []
    state: Arrays = {}
    for k in range(count):
        feed = {**generator.make_inputs(name, k), **state}
        reference.append(dict(zip(outputs, session.run(None, feed), strict=True)))
        state = {i: reference[-1][o] for i, o in chain.items()}
        feeds.append(feed)
    scalars = {n: np.asarray(v).item() for n, v in feeds[0].items() if np.ndim(v) == 0}
    samples = {n: np.stack([f[n] for f in feeds]) for n in feeds[0] if n not in scalars}
    return Subject(name, path, samples, reference, scalars, {n: a.shape[1:] for n, a in samples.items()})


def gate_findings(outcome: CompileOutcome, simulated: SimulateOutcome) -> str:
    """Return what would fail the gate, as ``CODE x n``."""
    codes = Counter(f.code for f in [*outcome.findings, *simulated.findings] if f.severity == "error")
    return ", ".join(f"{code} x {n}" for code, n in codes.items())


def built_row(base: Row, outcome: CompileOutcome, simulated: SimulateOutcome) -> Row:
    """Return the row of a finished build."""
    nodes = outcome.facts.nodes
    worst = min(simulated.outputs, key=lambda c: c.cosine, default=None)
    types = Counter(n.type for n in nodes if n.device != "BPU")
    return replace(
        base,
        result="built" if simulated.failure is None else f"simulate: {simulated.failure.code}",
        note="" if simulated.failure is None else simulated.failure.message,
        bpu=sum(n.device == "BPU" for n in nodes),
        cpu=" ".join(f"{t}:{n}" for t, n in types.items()),
        subgraphs=len(outcome.facts.subgraphs),
        latency_us=round(sum(s.latency_us for s in outcome.facts.subgraphs), 1),
        cosine=round(worst.cosine, 6) if worst else 0.0,
        worst_output=worst.output if worst else "",
        findings=gate_findings(outcome, simulated),
    )


async def simulate(
    toolchain: Toolchain, outcome: CompileOutcome, root: Path, result: TransformResult, arrays: Arrays, subject: Subject
) -> SimulateOutcome:
    """Run the quantised model on the held-out samples, against stock onnxruntime on the user's file."""
    held: Arrays = {n: a[-HELD_OUT:] for n, a in arrays.items()}
    references: Arrays = dict(map_references(result.io_map, subject.reference[-HELD_OUT:]))
    np.savez(root / "held.npz", **held)
    np.savez(root / "ref.npz", **references)
    if outcome.quantized_model is None:
        raise RuntimeError("a build without a quantised model")
    inputs = SimulateInputs(
        outcome.quantized_model, root / "m.bin", root / "held.npz", root / "ref.npz", outcome.spec, -1
    )
    with run_folder(root / "runs") as folder:
        return await simulate_model(toolchain, inputs, folder)


async def judge(toolchain: Toolchain, subject: Subject, precision: str, level: str, folder: RunFolder) -> Row:
    """Transform, compile and simulate one model in one precision."""
    base = Row(subject.name, precision, "")
    try:
        result = transform(subject.path, input_shapes=subject.shapes, frozen_inputs=subject.frozen,
                           precision=precision, samples=subject.samples)  # fmt: skip
    except Refusal as refusal:
        return replace(base, result=f"transform: {refusal.reason}", note=f"{refusal.message} {refusal.remedy}".strip())
    root = folder.temporary
    result.save(root / "m.onnx")
    arrays: Arrays = dict(map_inputs(result.io_map, subject.samples))
    np.savez(root / "cal.npz", **{n: a[:-HELD_OUT] for n, a in arrays.items()})
    base = replace(base, passes=sum(bool(report.applied) for report in result.passes))
    spec = CompileSpec(preset=precision, calibration=CalibrationSpec("max"), compiler=CompilerKnobs(level))
    with run_folder(root / "runs") as run:
        inputs = CompileInputs(root / "m.onnx", spec, root / "cal.npz", 2)
        outcome = await compile_model(toolchain, inputs, run, Limits(timeout_s=900), Hooks())
        if outcome.failure is not None:
            text = f"{outcome.failure.message} {outcome.failure.remedy}"
            return replace(base, result=f"compile: {outcome.failure.code}", note=text)
        (root / "m.bin").write_bytes(outcome.compiled)
        return built_row(base, outcome, await simulate(toolchain, outcome, root, result, arrays, subject))


def line_of(row: Row) -> str:
    """Return a row of a Markdown table."""
    if row.result == "built":
        cells = [row.precision, f"{row.bpu}", row.cpu or "none", f"{row.subgraphs}", f"{row.latency_us:g}",
                 f"{row.cosine:.6f} ({row.worst_output})", row.findings]  # fmt: skip
    else:
        cells = [row.precision, f"{row.result}: {row.note}", "", "", "", "", ""]
    return "| " + " | ".join([row.model, *cells]) + " |"


async def run(options: argparse.Namespace) -> list[Row]:
    """Judge all wanted models, large ones last."""
    toolchain = await probe_toolchain(TOOLCHAIN)
    generator = load_generator(options.models)
    with (options.models / "MODELS.csv").open(newline="") as stream:
        listed = [(entry["id"], options.models / entry["file"]) for entry in csv.DictReader(stream)]
    listed.sort(key=lambda item: item[0].startswith(LARGE))
    rows = []
    for name, path in listed:
        if options.only and not any(text in name for text in options.only):
            continue
        subject = load_subject(name, path, generator, options.samples)
        for precision in options.precision:
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="boardlift-bench-") as scratch, run_folder(Path(scratch)) as folder:
                row = await judge(toolchain, subject, precision, options.level, folder)
            rows.append(replace(row, wall_s=round(time.monotonic() - started, 1)))
            print(line_of(rows[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps([asdict(r) for r in rows], indent=2))
    return rows


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="texts in the models' names")
    parser.add_argument("--precision", nargs="*", default=["int8", "int16"], choices=["int8", "int16"])
    parser.add_argument("--level", default="O1", choices=["O0", "O1", "O2", "O3"])
    parser.add_argument("--samples", type=int, default=8, help="samples, two of them held out")
    parser.add_argument("--json", type=Path)
    rows = asyncio.run(run(parser.parse_args()))
    return 0 if rows and all(row.result == "built" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
