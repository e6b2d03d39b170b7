"""Compile seeded twins of models whose compile figures were published, and compare our compile with them.

    BOARDLIFT_TOOLCHAIN=DIR python benchmarks/published_figures.py [--only TEXT | --all] [--json OUT]

Every model goes through the compiler service's own compile function at O3: classifiers as nv12 cameras, policies as
feature maps in int16. Prints estimated latency and DDR traffic (both static estimates of the vendor's compiler), the
published figures, their ratio, and the band the ratio must lie in. Exit code 1 when one lies outside. The detectors for
640 x 640 take about ten minutes of processor time each and run only with --all or when named.

Bands: the estimate depends on values, not on shapes alone. Weights are packed, and rows that requantise appear where
calibration gives the branches of a Concat other ranges. A twin with random weights can be held to 2 % when its weights
are Laplace-distributed and its rows equal the published ones, to 12 % otherwise. Of the mixture of experts only the
form is known, its widths are fitted to the published latencies: 12 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec, InputSpec
from boardlift_compiler.toolchain import Toolchain, probe_toolchain

ROOT = Path(__file__).resolve().parents[1]
TOOLCHAIN = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
sys.path.insert(0, str(ROOT / "tests"))

from support import policy_models, published_detectors, published_models  # type: ignore[import-not-found]  # noqa: E402 - beside the tests

CAMERA = CompileSpec(
    inputs=(InputSpec("images", "rgb", "nv12", norm_type="data_scale", scale=(1 / 255,)),),
    calibration=CalibrationSpec("max"),
    compiler=CompilerKnobs("O3", jobs=2),
)
SOFTMAX = CAMERA.with_calibration(optimization=("set_Softmax_input_int8", "set_Softmax_output_int8"))
POLICY = CompileSpec(preset="int16", calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O3", jobs=2))


@dataclass(frozen=True)
class Published:
    """A published compile and its twin."""

    name: str
    build: Callable[[], onnx.ModelProto]
    samples: Callable[[], dict[str, Any]]
    spec: CompileSpec
    latency_us: tuple[float, ...]
    """Per BPU subgraph."""
    ddr_bytes: int
    """Sum over subgraphs; 0: not published."""
    rows: int
    """Rows on the BPU; 0: not published."""
    parameters: int = 0
    """What the vendor's tool counts after its preprocess node; 0: not published."""
    band: float = 0.02
    """Half width of the band of the ratio, once the rows are equal."""
    slow: bool = False


def pictures() -> dict[str, Any]:
    return {"images": published_models.photographs(4, 1)}


def large_pictures() -> dict[str, Any]:
    return {"images": published_models.photographs(4, 1, published_detectors.SIDE)}


def observations() -> dict[str, Any]:
    return {"obs": policy_models.observations(450, 16, 1)}


MODELS = (
    Published("yolov8n-cls 224", published_models.yolov8n_cls, pictures, CAMERA, (495.4,), 2_682_784, 79),
    Published("moe policy, grouped Conv", partial(policy_models.moe_policy, True, shortcut=True), observations,
              POLICY, (284.3, 80.8), 0, 0, band=0.12),
    Published("moe policy, block-diagonal Gemm", partial(policy_models.moe_policy, False, shortcut=True), observations,
              POLICY, (424.5,), 0, 0, band=0.12),
    Published("yolo11n-cls 224", published_models.yolo11n_cls, pictures, SOFTMAX, (817.5,), 2_857_024, 118, 2_807_049),
    Published("yolov8n 640", published_detectors.yolov8n, large_pictures, CAMERA, (3964.1,),
              12_651_904, 175, 3_151_908, slow=True),
    Published("yolo11n 640", published_detectors.yolo11n, large_pictures, SOFTMAX, (5167.5,),
              14_326_256, 243, 2_616_265, slow=True),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One compile against its published figures."""

    model: str
    latency_us: tuple[float, ...]
    published_us: tuple[float, ...]
    ratio: float
    ddr_bytes: int
    ddr_ratio: float
    bpu_rows: int
    published_rows: int
    cpu_rows: str
    parameters: int
    published_parameters: int
    band: float
    wall_s: float

    @property
    def holds(self) -> bool:
        """True when the latency lies in the band, with as many subgraphs, and the parameters are the published ones."""
        counts = not self.published_parameters or self.parameters == self.published_parameters
        same = len(self.latency_us) == len(self.published_us)
        return counts and same and abs(self.ratio - 1) <= self.band


async def compile_twin(toolchain: Toolchain, wanted: Published, root: Path) -> Row:
    """Compile one twin in a run folder of its own."""
    onnx.save(wanted.build(), str(root / "m.onnx"))
    np.savez(root / "m.npz", **wanted.samples())
    inputs = CompileInputs(root / "m.onnx", wanted.spec, root / "m.npz", 2)
    started = time.monotonic()
    with run_folder(root / "runs") as folder:
        outcome = await compile_model(toolchain, inputs, folder, Limits(), Hooks())
        parameters = count_parameters(outcome)
    if outcome.failure is not None:
        raise RuntimeError(f"{wanted.name}: {outcome.failure.code} {outcome.failure.message}")
    return compare(wanted, outcome, parameters, time.monotonic() - started)


def count_parameters(outcome: CompileOutcome) -> int:
    """Return the parameters after the tool has put its preprocess node in front, as it counts them; 0 without."""
    path = outcome.files.get("original_float_model.onnx")
    return sum(math.prod(t.dims) for t in onnx.load(str(path)).graph.initializer) if path else 0


def compare(wanted: Published, outcome: CompileOutcome, parameters: int, seconds: float) -> Row:
    """Put an outcome beside the published figures."""
    facts = outcome.facts
    latencies = tuple(line.latency_us for line in facts.subgraphs)
    traffic = sum(line.ddr_bytes for line in facts.subgraphs)
    rows = sum(node.device == "BPU" for node in facts.nodes)
    return Row(
        wanted.name,
        latencies,
        wanted.latency_us,
        round(sum(latencies) / sum(wanted.latency_us), 4),
        traffic,
        round(traffic / wanted.ddr_bytes, 4) if wanted.ddr_bytes else 0.0,
        rows,
        wanted.rows,
        " ".join(node.type for node in facts.nodes if node.device != "BPU"),
        parameters,
        wanted.parameters,
        wanted.band if rows == wanted.rows or not wanted.rows else 0.12,
        round(seconds, 1),
    )


def line_of(row: Row) -> str:
    """Return a row as text."""
    us = " + ".join(f"{v:g}" for v in row.latency_us)
    published = " + ".join(f"{v:g}" for v in row.published_us)
    parts = [f"{row.model}: {us} us, published {published} us, ratio {row.ratio:.3f} (band {row.band:.0%})"]
    parts.append(f"DDR {row.ddr_bytes} bytes" + (f", ratio {row.ddr_ratio:.3f}" if row.ddr_ratio else ""))
    parts.append(f"{row.bpu_rows} BPU rows" + (f", published {row.published_rows}" if row.published_rows else ""))
    parts.append(f"CPU: {row.cpu_rows or 'none'}")
    if row.published_parameters:
        parts.append(f"{row.parameters} parameters, published {row.published_parameters}")
    parts.append(f"measured {row.wall_s} s of wall time")
    return "; ".join(parts) + (": holds" if row.holds else ": OUTSIDE")


async def run(only: str, slow: bool) -> list[Row]:
    """Compile all wanted twins, one after the other; ``slow`` adds those that take minutes."""
    toolchain = await probe_toolchain(TOOLCHAIN)
    rows = []
    for wanted in MODELS:
        if only in wanted.name and (slow or not wanted.slow):
            with tempfile.TemporaryDirectory(prefix="boardlift-bench-") as folder:
                rows.append(await compile_twin(toolchain, wanted, Path(folder)))
            print(line_of(rows[-1]), flush=True)
    return rows


def main() -> int:
    """Print the comparison; 1 when a figure lies outside its band."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="text in the model's name")
    parser.add_argument("--all", action="store_true", help="the detectors as well, ten minutes of processor time each")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = asyncio.run(run(options.only, options.all or bool(options.only)))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) | {"holds": row.holds} for row in rows], indent=2))
    return 0 if rows and all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
