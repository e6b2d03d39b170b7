"""One ONNX model through transform, checker, compile and simulation, as the services do it: what became of it.

Shared by the benchmarks over many models. Latency is estimated by the vendor's compiler; the cosine is simulated: the
quantised model against stock onnxruntime on the user's own file, over held-out samples.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.run_check import check_placement
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.simulate_outcome import SimulateOutcome
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec
from boardlift_compiler.toolchain import Toolchain
from boardlift_transform import Refusal, TransformResult, transform
from boardlift_transform.map_dataset import map_inputs, map_references

ROOT = Path(__file__).resolve().parents[1]
TOOLCHAIN = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
HELD_OUT = 2
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """One model with samples and reference."""

    name: str
    path: Path
    samples: Arrays
    reference: list[Arrays]
    """Outputs per sample; at least of the held-out ones, which are the last."""
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
    """Types on the CPU with their counts."""
    subgraphs: int = 0
    latency_us: float = 0.0
    cosine: float = 0.0
    """Of the worst output."""
    worst_output: str = ""
    findings: str = ""
    """Findings that fail the variant's gate by default, with their counts."""
    note: str = ""
    """Message of the refusal."""
    subject: str = ""
    """Node, tensor or file at fault."""
    remedy: str = ""
    evidence: str = ""
    """What the tool printed last."""
    digest: str = ""
    """SHA-256 of what the compiler was given."""
    same_as: str = ""
    """Another file whose transformed model, samples and reference are the same to the bit: judged once."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time per stage; measured."""
    wall_s: float = 0.0


@dataclass(frozen=True)
class Bench:
    """How models are judged."""

    toolchain: Toolchain
    level: str = "O1"
    hooks: Hooks = field(default_factory=Hooks)
    timeout_s: float = 900.0
    """Per stage."""
    check: bool = False
    """Run the vendor's checker as well."""
    known: dict[str, Row] = field(default_factory=dict)
    """Rows by digest that need not be judged again."""


def gate_findings(outcome: CompileOutcome, simulated: SimulateOutcome) -> str:
    """Return what would fail the gate, as ``CODE x n``."""
    codes = Counter(f.code for f in [*outcome.findings, *simulated.findings] if f.severity == "error")
    return ", ".join(f"{code} x {n}" for code, n in codes.items())


def failed_row(base: Row, stage: str, failure: StageFailure) -> Row:
    """Return the row of a stage that said no."""
    return replace(base, result=f"{stage}: {failure.code}", note=failure.message, subject=failure.subject,
                   remedy=failure.remedy, evidence="\n".join(failure.evidence)[-2000:])  # fmt: skip


def refused_row(base: Row, refusal: Refusal) -> Row:
    """Return the row of a model that the transform refused."""
    subject = next((str(refusal.metadata[k]) for k in ("node", "input", "output") if k in refusal.metadata), "")
    result = f"transform: {refusal.reason}"
    return replace(base, result=result, note=refusal.message, subject=subject, remedy=refusal.remedy)


def built_row(base: Row, outcome: CompileOutcome, simulated: SimulateOutcome) -> Row:
    """Return the row of a finished build."""
    nodes = outcome.facts.nodes
    worst = min(simulated.outputs, key=lambda c: c.cosine, default=None)
    types = Counter(n.type for n in nodes if n.device != "BPU")
    row = replace(
        base,
        result="built",
        bpu=sum(n.device == "BPU" for n in nodes),
        cpu=" ".join(f"{t}:{n}" for t, n in types.items()),
        subgraphs=len(outcome.facts.subgraphs),
        latency_us=round(sum(s.latency_us for s in outcome.facts.subgraphs), 1),
        cosine=round(worst.cosine, 6) if worst else 0.0,
        worst_output=worst.output if worst else "",
        findings=gate_findings(outcome, simulated),
    )
    return row if simulated.failure is None else failed_row(row, "simulate", simulated.failure)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in this (the main) thread after so many seconds."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError(f"not done within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


async def simulate(
    bench: Bench, outcome: CompileOutcome, root: Path, result: TransformResult, arrays: Arrays, subject: Subject
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
        return await simulate_model(bench.toolchain, inputs, folder)


def digest_of(bench: Bench, precision: str, model: Path, arrays: Arrays, reference: list[Arrays]) -> str:
    """Return the SHA-256 of everything a build and its simulation depend on, but for the toolchain."""
    digest = hashlib.sha256(f"{precision} {bench.level} {bench.timeout_s} {bench.check}".encode())
    digest.update(model.read_bytes())
    for group in (arrays, *reference):
        for name, array in sorted(group.items()):
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


async def judge(bench: Bench, subject: Subject, precision: str, root: Path) -> Row:
    """Transform, check, compile and simulate one model in one precision; ``root`` is an empty folder."""
    base = Row(subject.name, precision, "", seconds={})
    clock = time.monotonic()

    def lap(stage: str) -> None:
        nonlocal clock
        now = time.monotonic()
        base.seconds[stage], clock = round(now - clock, 2), now

    try:
        with time_limit(bench.timeout_s):
            result = transform(subject.path, input_shapes=subject.shapes, frozen_inputs=subject.frozen,
                               precision=precision, samples=subject.samples)  # fmt: skip
    except Refusal as refusal:
        lap("transform")
        return refused_row(base, refusal)
    except TimeoutError as error:
        lap("transform")
        return replace(base, result="transform: TIMEOUT", note=str(error))
    result.save(root / "m.onnx")
    lap("transform")
    arrays: Arrays = dict(map_inputs(result.io_map, subject.samples))
    base = replace(base, digest=digest_of(bench, precision, root / "m.onnx", arrays, subject.reference))
    twin = bench.known.get(base.digest)
    if twin is not None and twin.model == subject.name:
        return twin
    if twin is not None:
        return replace(twin, model=subject.name, seconds=base.seconds, same_as=twin.same_as or twin.model)
    np.savez(root / "cal.npz", **{n: a[:-HELD_OUT] for n, a in arrays.items()})
    base = replace(base, passes=sum(bool(report.applied) for report in result.passes))
    spec = CompileSpec(preset=precision, calibration=CalibrationSpec("max"), compiler=CompilerKnobs(bench.level))
    limits = Limits(timeout_s=bench.timeout_s)
    if bench.check:
        with run_folder(root / "runs") as run:
            checked = await check_placement(bench.toolchain, root / "m.onnx", spec, run, limits, bench.hooks)
        lap("check")
        if checked.failure is not None:
            return failed_row(base, "check", checked.failure)
    with run_folder(root / "runs") as run:
        inputs = CompileInputs(root / "m.onnx", spec, root / "cal.npz", 2)
        outcome = await compile_model(bench.toolchain, inputs, run, limits, bench.hooks)
        lap("compile")
        if outcome.failure is not None:
            return failed_row(base, "compile", outcome.failure)
        (root / "m.bin").write_bytes(outcome.compiled)
        row = built_row(base, outcome, await simulate(bench, outcome, root, result, arrays, subject))
        lap("simulate")
        return row
