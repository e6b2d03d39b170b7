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
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from boardlift_compiler.toolchain import probe_toolchain
from judge_model import TOOLCHAIN, Arrays, Bench, Row, Subject, judge

LARGE = ("ppocr", "yolox")


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


def line_of(row: Row) -> str:
    """Return a row of a Markdown table."""
    if row.result == "built":
        cells = [row.precision, f"{row.bpu}", row.cpu or "none", f"{row.subgraphs}", f"{row.latency_us:g}",
                 f"{row.cosine:.6f} ({row.worst_output})", row.findings]  # fmt: skip
    else:
        cells = [row.precision, f"{row.result}: {row.note} {row.remedy}", "", "", "", "", ""]
    return "| " + " | ".join([row.model, *cells]) + " |"


async def run(options: argparse.Namespace) -> list[Row]:
    """Judge all wanted models, large ones last."""
    bench = Bench(await probe_toolchain(TOOLCHAIN), options.level)
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
            with tempfile.TemporaryDirectory(prefix="boardlift-bench-") as scratch:
                row = await judge(bench, subject, precision, Path(scratch))
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
