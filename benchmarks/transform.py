"""The transform stage against onnxsim, onnxslim and the floor (load and save), on the same files in one run.

    python benchmarks/transform.py MODELS_DIR [--only TEXT] [--repeat 3] [--scale] [--megabytes 100] [--json OUT]

MODELS_DIR holds any `.onnx` files. Our stage is everything but the two reference runs of the proof: load, checks,
plan, passes, result checks. Times are processor seconds (measured, all threads, median of the repeats), so a busy
machine disturbs them less. `--scale` adds time per node from 1,000 to 20,000 nodes, `--megabytes` a model of that size
with its peak memory, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from boardlift_transform import Refusal
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.transform_model import transform

WIDTH = 2048


def floor(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(onnx.load(str(path)), f"{folder}/m.onnx")


def ours(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        transform(path, verify=False).save(f"{folder}/m.onnx")


def with_onnxsim(path: Path) -> None:
    import onnxsim

    with tempfile.TemporaryDirectory() as folder:
        onnx.save(onnxsim.simplify(onnx.load(str(path)))[0], f"{folder}/m.onnx")


def with_onnxslim(path: Path) -> None:
    import onnxslim

    with tempfile.TemporaryDirectory() as folder:
        onnx.save(onnxslim.slim(onnx.load(str(path))), f"{folder}/m.onnx")


TOOLS: dict[str, Callable[[Path], None]] = {
    "floor": floor,
    "boardlift": ours,
    "onnxsim": with_onnxsim,
    "onnxslim": with_onnxslim,
}


def measure(tool: Callable[[Path], None], path: Path, repeat: int) -> float | str:
    times = []
    for _ in range(repeat + 1):
        start = time.process_time()
        try:
            tool(path)
        except Refusal as refusal:
            return refusal.reason
        except Exception as error:  # noqa: BLE001 - peers raise whatever they like; it is the result
            return type(error).__name__
        times.append(time.process_time() - start)
    return statistics.median(times[1:] or times)


def compare(models: list[Path], repeat: int) -> list[dict[str, Any]]:
    rows = []
    for path in models:
        row: dict[str, Any] = {"model": path.stem}
        row.update({name: measure(tool, path, repeat) for name, tool in TOOLS.items()})
        rows.append(row)
        cells = [f"{name} {shown(row[name])}" for name in TOOLS]
        print(f"{row['model']:36s} {'  '.join(cells)}", flush=True)
    return rows


def shown(value: float | str) -> str:
    return f"{value * 1e3:8.1f} ms" if isinstance(value, float) else f"{value:>11s}"


def ratios(rows: list[dict[str, Any]]) -> dict[str, float]:
    out = {}
    for peer in ("onnxsim", "onnxslim", "floor"):
        pairs = [
            r["boardlift"] / r[peer] for r in rows if isinstance(r["boardlift"], float) and isinstance(r[peer], float)
        ]
        if pairs:
            out[f"boardlift / {peer}, median of {len(pairs)}"] = round(statistics.median(pairs), 3)
    return out


def chain(nodes: int) -> onnx.ModelProto:
    b = GraphBuilder(17)
    x, w, bias = b.input("x", ["batch", 16]), b.weight(16, 16), b.weight(16)
    for _ in range(nodes // 2):
        x = b.node("Elu", [b.node("Gemm", [x, w, bias], transB=1)])
    b.node("Identity", [x], "y")
    b.output("y", ["batch", 16])
    return b.model()


def wide(megabytes: int) -> onnx.ModelProto:
    b = GraphBuilder(17)
    x = b.input("x", ["batch", WIDTH])
    for _ in range(max(1, megabytes * 1_000_000 // (WIDTH * WIDTH * 4))):
        x = b.node("Tanh", [b.node("Gemm", [x, b.weight(WIDTH, WIDTH)], transB=1)])
    b.node("Identity", [x], "y")
    b.output("y", ["batch", WIDTH])
    return b.model()


def peak_kib() -> int:
    """Largest resident size of this process so far; getrusage would count the parent before exec."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) if found else 0


def one(tool: str, path: Path) -> None:
    """In a process of its own: processor seconds and peak memory of one call, as JSON."""
    base = peak_kib()
    start = time.process_time()
    TOOLS[tool](path)
    peak = peak_kib()
    size = path.stat().st_size
    print(
        json.dumps({"seconds": time.process_time() - start, "peak_to_size": (peak - base) * 1024 / size, "size": size})
    )


def in_process(tool: str, model: onnx.ModelProto) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        onnx.save(model, str(path))
        command = [sys.executable, __file__, "--one", tool, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--megabytes", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(options.one[0], Path(options.one[1]))
    report: dict[str, Any] = {}
    if options.models:
        paths = sorted(p for p in options.models.glob("*.onnx") if options.only in p.name)
        report["models"] = compare(paths, options.repeat)
        report["ratios"] = ratios(report["models"])
        print(json.dumps(report["ratios"], indent=2))
    if options.scale:
        costs = {n: in_process("boardlift", chain(n))["seconds"] / n * 1e6 for n in (1000, 4000, 20000)}
        report["microseconds_per_node"] = {str(n): round(c, 1) for n, c in costs.items()}
        print("processor microseconds per node:", report["microseconds_per_node"])
    if options.megabytes:
        model = wide(options.megabytes)
        low, high = in_process("floor", model), in_process("boardlift", model)
        report["size"] = {"floor": low, "boardlift": high, "time_ratio": round(high["seconds"] / low["seconds"], 2)}
        print(f"{options.megabytes} MB: {report['size']['time_ratio']} x the floor's time, ", end="")
        print(f"peak memory {high['peak_to_size']:.2f} x the model's size (floor {low['peak_to_size']:.2f})")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2, default=lambda x: np.asarray(x).tolist()))


if __name__ == "__main__":
    main()
