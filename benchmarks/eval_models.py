"""Networks in the forms that exporters give them, through transform, checker, compile and simulation.

    BOARDLIFT_TOOLCHAIN=DIR python benchmarks/eval_models.py MODELS_DIR OUT_DIR [--only TEXT ...]
    python benchmarks/eval_models.py MODELS_DIR OUT_DIR --report

MODELS_DIR holds ``MODEL__EXPORTER_OPSET.onnx`` and per model ``MODEL.npz`` with a few input sets (``inK:NAME``). Of
these only shape, element type and range are taken: whole numbers are drawn evenly up to the largest seen, floats evenly
where all lie in 0..1 or are not negative, else normal; seeded by model. All samples but two calibrate (method max).

Writes a row per model and precision into OUT_DIR. Every file is transformed anew; what comes out the same to the bit as
for a row that is there, with the same samples, is not built again: so it may be stopped, and tells what a changed pass
changed. A table per model is printed at the end. Latency is estimated by the vendor's compiler, the cosine simulated
on two held-out samples.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from boardlift_compiler.run_mapper import Hooks
from boardlift_compiler.toolchain import probe_toolchain
from boardlift_compiler.warm_start import WarmStart
from judge_model import HELD_OUT, TOOLCHAIN, Arrays, Bench, Row, Subject, judge
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotServed

INVALID = (InvalidGraph, Fail, NotServed)
PRECISIONS = ("int8", "int16")


def draw_like(rng: np.random.Generator, seen: Any, count: int) -> Any:
    """Return ``[count, ...]`` of the element type, shape and range of ``seen`` (``[sets, ...]``)."""
    shape = (count, *seen.shape[1:])
    if seen.dtype == np.bool_:
        return rng.random(shape) > 0.5
    if not seen.size:
        return np.zeros(shape, seen.dtype)
    if seen.dtype.kind in "iu":
        return rng.integers(min(0, int(seen.min())), int(seen.max()) + 1, shape).astype(seen.dtype)
    low, high = float(seen.min()), float(seen.max())
    if low >= 0:
        return rng.uniform(0, 1 if high <= 1 else high, shape).astype(seen.dtype)
    return rng.normal(float(seen.mean()), float(seen.std()), shape).astype(seen.dtype)


def open_model(path: Path) -> tuple[set[str], list[str], Any]:
    """Return the inputs that are fed, the outputs, and a session; none for a file that the runtime refuses."""
    graph = onnx.load(str(path), load_external_data=False).graph
    fed = {i.name for i in graph.input} - {w.name for w in graph.initializer}
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except INVALID:  # the transform says by name what is wrong with it
        session = None
    return fed, [o.name for o in graph.output], session


def load_subject(path: Path, count: int) -> Subject:
    """Make samples and run the user's own file on the held-out ones."""
    kind = path.stem.split("__")[0]
    with np.load(path.with_name(f"{kind}.npz")) as stored:
        names = [n.partition(":")[2] for n in stored.files if n.startswith("in0:")]
        sets = {
            n: np.stack([stored[k] for k in stored.files if k.endswith(f":{n}") and k.startswith("in")]) for n in names
        }
    fed, outputs, session = open_model(path)
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    samples: Arrays = {n: draw_like(rng, seen, count) for n, seen in sets.items()}
    samples = {n: a for n, a in samples.items() if n in fed}
    held = [{n: np.asarray(a[k]) for n, a in samples.items()} for k in range(count - HELD_OUT, count)]
    reference: list[Arrays] = []
    if session is not None:
        reference = [dict(zip(outputs, session.run(None, feed), strict=True)) for feed in held]
    return Subject(path.stem, path, samples, reference, {}, {n: a.shape[1:] for n, a in samples.items()})


async def run(options: argparse.Namespace) -> None:
    """Judge all wanted models."""
    onnxruntime.set_default_logger_severity(4)
    toolchain = await probe_toolchain(TOOLCHAIN)
    with tempfile.TemporaryDirectory(prefix="boardlift-bench-") as warm_root:
        warm = WarmStart(toolchain, Path(warm_root))
        bench = Bench(toolchain, options.level, Hooks(launcher=warm.launch), options.timeout, check=True)
        bench.known.update((row.digest, row) for row in read_rows(options) if row.digest and not row.same_as)
        try:
            for path in wanted_files(options):
                for precision in options.precision:
                    await judge_file(bench, path, precision, options)
        finally:
            await warm.close()


def wanted_files(options: argparse.Namespace) -> list[Path]:
    """Return the models to judge."""
    files = sorted(options.models.glob("*__*.onnx"))
    return [p for p in files if not options.only or any(text in p.stem for text in options.only)]


async def judge_file(bench: Bench, path: Path, precision: str, options: argparse.Namespace) -> None:
    """Judge one model in one precision and write its row."""
    target = options.out / f"{path.stem}.{precision}.json"
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="boardlift-bench-") as scratch:
        row = await judge(bench, load_subject(path, options.samples), precision, Path(scratch))
    if row.digest and row.digest not in bench.known:
        row = bench.known[row.digest] = replace(row, wall_s=round(time.monotonic() - started, 1))
    target.write_text(json.dumps(asdict(row), indent=1))
    print(f"{row.model} {precision}: {row.result} {row.subject} {row.wall_s} s {row.cosine or ''}", flush=True)


def read_rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows of the wanted models that are there."""
    files = [
        options.out / f"{p.stem}.{precision}.json" for p in wanted_files(options) for precision in options.precision
    ]
    return [Row(**json.loads(f.read_text())) for f in files if f.exists()]


def report(rows: list[Row]) -> str:
    """Return counts by outcome, and a Markdown table with a line per model and precision."""
    lines = [f"{n} x {result}" for result, n in Counter(r.result for r in rows).most_common()]
    lines.append(f"{len({r.digest for r in rows if r.digest})} different builds")
    heads = ("model", "precision", "built of files", "us (estimated)", "subgraphs", "on the CPU",
             "lowest cosine (simulated)", "not built")  # fmt: skip
    lines += ["", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.model.split("__")[0], row.precision].append(row)
    lines += [line_of(*key, members) for key, members in sorted(groups.items())]
    return "\n".join(lines)


def line_of(model: str, precision: str, rows: list[Row]) -> str:
    """Return the line of one model in one precision, over all its files."""
    built = [r for r in rows if r.result == "built"]
    reasons = Counter(f"{r.result} {r.subject}".strip() for r in rows if r.result != "built")
    cells = [model, precision, f"{len(built)} of {len(rows)}", span([r.latency_us for r in built]),
             span([r.subgraphs for r in built]), "; ".join(sorted({r.cpu for r in built if r.cpu})),
             f"{min(r.cosine for r in built):.4f}" if built else "",
             "; ".join(f"{reason} x {n}" for reason, n in reasons.items())]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def span(values: list[float] | list[int]) -> str:
    """Return the smallest and the largest value."""
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def main() -> int:
    """Judge and print the table; 0 when every model has a row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="texts in the models' names")
    parser.add_argument("--precision", nargs="*", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--level", default="O1", choices=["O0", "O1", "O2", "O3"])
    parser.add_argument("--samples", type=int, default=24, help="samples, two of them held out")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds per stage")
    parser.add_argument("--report", action="store_true", help="only print the table of what is there")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        asyncio.run(run(options))
    rows = read_rows(options)
    print(report(rows))
    return 0 if rows and len(rows) == len(wanted_files(options)) * len(options.precision) else 1


if __name__ == "__main__":
    sys.exit(main())
