"""Random networks through transform, compile and simulation: does anything come out wrong without a word?

    BOARDLIFT_TOOLCHAIN=DIR python benchmarks/random_networks.py OUT_DIR [--seeds 0:100] [--wide]
    python benchmarks/random_networks.py OUT_DIR --report

Every seed draws one network (``draw_network``), which goes the way that the services go: transform with proof, compile
(method max), quantised model on samples that calibration never saw, compiled code against the quantised model bit by
bit. What came of it is one of

    fine       every output near the float model (below), every bit equal
    named      not near, and a finding with a code says so; or one that fails the gate by default
    far        not near, which is told, but no finding says why
    refused    a stage said no, with a code of its own
    generic    a stage said no with a code that names no cause
    SILENT     not near, or bits differ, and no finding says so

Near is: signal to noise of every float output, means taken out, at least 17 dB (simulated).
Whole-number outputs are judged by the bits only: an index flips on a tie. A row per seed and precision is written into
OUT_DIR, so it may be stopped; ``--only-new`` leaves rows that are there. Prints a table of all that is not fine and the
ratio of fine runs. Exit code 1 when a run is SILENT or generic.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.find_far_outputs import centred_db
from boardlift_compiler.find_parting import LOSS_DB
from boardlift_compiler.findings import Finding
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model
from boardlift_compiler.run_folder import RunFolder, run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.simulate_outcome import SimulateOutcome
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec
from boardlift_compiler.toolchain import Toolchain, probe_toolchain
from boardlift_compiler.warm_start import WarmStart
from boardlift_transform import Refusal, TransformResult, transform
from boardlift_transform.map_dataset import map_inputs, map_references
from draw_network import Array, Drawn, draw_network
from judge_model import TOOLCHAIN, time_limit

PRECISIONS = ("int8", "int16")
GENERIC = {"TOOL_REFUSED", "EXIT_CODE", "CRASH", "TIMEOUT", "HANG", "LOG_NOT_UNDERSTOOD", "NO_COMPILED_MODEL",
           "SIMULATION_FAILED", "COMPILER_FAILED", "COMPILER_CRASH", "VENDOR_PASS_FAILED", "NOT_CLOSED",
           "COMPILED_MODEL_UNREADABLE", "NOT_EQUIVALENT", "INTERNAL"}  # fmt: skip
"""Codes that name no cause."""
TELLING = {"QUANTISATION_LOSS", "OUTPUT_CHANNELS_LOST", "OUTPUT_SATURATES", "SAMPLE_OUTSIDE_CALIBRATION"}
"""Warnings that say that an output is not near; errors always do."""
CALIBRATION, HELD_OUT = 32, 8


@dataclass(frozen=True)
class Row:
    """What became of one network in one precision."""

    seed: int
    precision: str
    kind: str
    """As in the module's text."""
    layers: str
    code: str = ""
    """Of a refusal, with its stage."""
    note: str = ""
    snr_db: float = float("inf")
    """Of the worst float output; simulated."""
    cosine: float = 1.0
    """Of the worst float output; simulated."""
    findings: tuple[str, ...] = ()
    """Code and subject."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time per stage; measured."""


@dataclass(frozen=True)
class Setting:
    """How runs are made."""

    toolchain: Toolchain
    hooks: Hooks
    level: str
    timeout_s: float
    keep: Path | None
    """Where files of every build are kept."""
    wide: bool = False
    """As in ``draw_network``."""


def classify(snr_db: float, findings: list[Finding], exact: bool) -> str:
    """Return fine, named, far or SILENT."""
    near = snr_db >= LOSS_DB
    if near and exact and not any(f.severity == "error" for f in findings):
        return "fine"
    errors = {f.code for f in findings if f.severity == "error"}
    if not exact:
        return "named" if "COMPILED_CODE_DIFFERS" in errors else "SILENT"
    if errors or any(f.code in TELLING for f in findings):
        return "named"
    return "far" if any(f.code == "OUTPUT_FAR_FROM_FLOAT" for f in findings) else "SILENT"


def said_no(base: dict[str, Any], stage: str, code: str, note: str) -> Row:
    """Return the row of a stage that said no."""
    kind = "generic" if code in GENERIC else "refused"
    return Row(**base, kind=kind, code=f"{stage}: {code}", note=note[:300])


def failed(base: dict[str, Any], stage: str, failure: StageFailure) -> Row:
    """Return the row of a tool that said no."""
    return said_no(base, stage, failure.code, f"{failure.subject} | {failure.message} | {' '.join(failure.evidence)}")


async def judge(setting: Setting, seed: int, precision: str, root: Path) -> Row:
    """Draw, transform, compile and simulate; ``root`` is an empty folder."""
    drawn = draw_network(seed, CALIBRATION + HELD_OUT, wide=setting.wide)
    base: dict[str, Any] = {"seed": seed, "precision": precision, "layers": " ".join(drawn.layers), "seconds": {}}
    clock = time.monotonic()

    def lap(stage: str) -> None:
        nonlocal clock
        base["seconds"][stage] = round(time.monotonic() - clock, 2)
        clock = time.monotonic()

    try:
        with time_limit(setting.timeout_s):
            result = transform(drawn.model, precision=precision, samples=drawn.samples)
    except Refusal as refusal:
        return said_no(base, "transform", refusal.reason, refusal.message)
    except TimeoutError as error:
        return said_no(base, "transform", "TIMEOUT", str(error))
    lap("transform")
    result.save(root / "m.onnx")
    arrays: dict[str, Array] = dict(map_inputs(result.io_map, drawn.samples))
    np.savez(root / "cal.npz", **{n: a[:CALIBRATION] for n, a in arrays.items()})  # type: ignore[arg-type]
    np.savez(root / "held.npz", **{n: a[CALIBRATION:] for n, a in arrays.items()})  # type: ignore[arg-type]
    spec = CompileSpec(preset=precision, calibration=CalibrationSpec("max"), compiler=CompilerKnobs(setting.level))
    with run_folder(root / "runs") as run:
        inputs = CompileInputs(root / "m.onnx", spec, root / "cal.npz", 1)
        outcome = await compile_model(setting.toolchain, inputs, run, Limits(setting.timeout_s), setting.hooks)
        lap("compile")
        if outcome.failure is not None:
            return failed(base, "compile", outcome.failure)
        with run_folder(root / "runs") as other:
            simulated = await simulate(setting, outcome, root, other, result, drawn)
            lap("simulate")
            if simulated.failure is not None:
                return failed(base, "simulate", simulated.failure)
            return built(base, outcome, simulated, result, drawn)


async def simulate(
    setting: Setting, outcome: CompileOutcome, root: Path, folder: RunFolder, result: TransformResult, drawn: Drawn
) -> SimulateOutcome:
    """Run the quantised model on the held-out samples, and the compiled code on four of them."""
    (root / "m.bin").write_bytes(outcome.compiled)
    np.savez(root / "ref.npz", **references(result, drawn))  # type: ignore[arg-type]
    if outcome.quantized_model is None:
        raise RuntimeError("a build without a quantised model")
    if setting.keep is not None:
        keep(setting.keep / root.name, outcome, root)
    inputs = SimulateInputs(
        outcome.quantized_model, root / "m.bin", root / "held.npz", root / "ref.npz", outcome.spec,
        launcher=setting.hooks.launcher,
    )  # fmt: skip
    return await simulate_model(setting.toolchain, inputs, folder)


def references(result: TransformResult, drawn: Drawn) -> dict[str, Array]:
    """Return onnxruntime's outputs of the network as it was drawn, on the held-out samples."""
    rows = [{n: o[k] for n, o in drawn.outputs.items()} for k in range(CALIBRATION, CALIBRATION + HELD_OUT)]
    return dict(map_references(result.io_map, rows))


def keep(folder: Path, outcome: CompileOutcome, root: Path) -> None:
    """Copy what a build left."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [
        *root.glob("*.npz"),
        root / "m.onnx",
        root / "m.bin",
        outcome.quantized_model,
        *outcome.files.values(),
    ]:
        if path is not None:
            (folder / path.name).write_bytes(path.read_bytes())


def built(
    base: dict[str, Any], outcome: CompileOutcome, simulated: SimulateOutcome, result: TransformResult, drawn: Drawn
) -> Row:
    """Return the row of a finished build."""
    want = references(result, drawn)
    with np.load(str(simulated.quantized_outputs)) as loaded:
        got = {n: loaded[n] for n in want if n in loaded.files}
    floats = [n for n in got if want[n].dtype.kind == "f"]
    snr = min([centred_db(got[n].reshape(want[n].shape), want[n]) for n in floats], default=float("inf"))
    findings = [*outcome.findings, *simulated.findings]
    return Row(
        **base,
        kind=classify(snr, findings, simulated.bit_exact),
        snr_db=round(snr, 1),
        cosine=round(min([c.cosine for c in simulated.outputs if c.output in floats], default=1.0), 6),
        findings=tuple(sorted({f"{f.code} {f.subject}".strip() for f in findings if f.severity != "note"})),
    )


async def run(options: argparse.Namespace) -> None:
    """Judge all wanted seeds."""
    toolchain = await probe_toolchain(TOOLCHAIN)
    with tempfile.TemporaryDirectory(prefix="boardlift-bench-") as scratch:
        warm = WarmStart(toolchain, Path(scratch))
        setting = Setting(
            toolchain, Hooks(launcher=warm.launch), options.level, options.timeout, options.keep, options.wide
        )
        try:
            for seed in options.seeds:
                for precision in options.precision:
                    target = row_path(options, seed, precision)
                    if options.only_new and target.exists():
                        continue
                    root = Path(scratch) / f"{seed}.{precision}"
                    root.mkdir()
                    row = await judge(setting, seed, precision, root)
                    target.write_text(json.dumps(asdict(row)))
                    print(line_of(row), flush=True)
        finally:
            await warm.close()


def row_path(options: argparse.Namespace, seed: int, precision: str) -> Path:
    """Return the file of a row."""
    return Path(options.out) / f"{'w' if options.wide else ''}{seed}.{precision}.json"


def line_of(row: Row) -> str:
    """Return the row as a line of the table."""
    figures = f"{row.snr_db:6.1f} dB  cosine {row.cosine:.4f}" if not row.code else row.code
    return (
        f"{row.seed:5d} {row.precision:5s} {row.kind:7s} {figures}  [{row.layers}]  {', '.join(row.findings)}{row.note}"
    )


def report(rows: list[Row]) -> str:
    """Return counts, everything that is not fine, and the ratio."""
    lines = [line_of(r) for r in sorted(rows, key=lambda r: (r.kind, r.seed)) if r.kind != "fine"]
    for precision in PRECISIONS:
        kinds = Counter(r.kind for r in rows if r.precision == precision)
        total = sum(kinds.values())
        if total:
            told = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
            lines.append(f"{precision}: {kinds['fine'] / total:.3f} of {total} fine ({told})")
    return "\n".join(lines)


def seeds_of(text: str) -> list[int]:
    """Read ``3``, ``0:50`` or ``1,4,20:30``."""
    found: list[int] = []
    for part in text.split(","):
        first, colon, end = part.partition(":")
        found += range(int(first), int(end)) if colon else [int(first)]
    return found


def main() -> int:
    """Judge and print; 1 when a run is SILENT or generic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("0:100"), help="as 3, 0:50 or 1,4,20:30")
    parser.add_argument("--precision", nargs="*", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--level", default="O1", choices=["O0", "O1", "O2", "O3"])
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds per stage")
    parser.add_argument("--keep", type=Path, help="folder for the files of every build")
    parser.add_argument("--wide", action="store_true", help="draw from the longer lists; rows have names of their own")
    parser.add_argument("--only-new", action="store_true", help="leave rows that are there")
    parser.add_argument("--report", action="store_true", help="only print the table of what is there")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        asyncio.run(run(options))
    wanted = [row_path(options, seed, precision) for seed in options.seeds for precision in options.precision]
    rows = [Row(**json.loads(p.read_text())) for p in wanted if p.exists()]
    print(report(rows))
    return 1 if not rows or any(r.kind in ("SILENT", "generic") for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
