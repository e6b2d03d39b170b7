"""Record the logs that the parser's tests read: ``record_logs.py TOOLCHAIN``. Paths are replaced by neutral names."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import build_models as models
import numpy as np
from boardlift_compiler.run_check import check_placement
from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.scrub_paths import Scrubber
from boardlift_compiler.spec import CalibrationSpec, CompileSpec
from boardlift_compiler.split_log import STAMP
from boardlift_compiler.toolchain import probe_toolchain

HERE = Path(__file__).resolve().parent
MAX = CalibrationSpec("max")


async def record(toolchain, name, model, spec, root):
    """Compile once and keep the console and, beside it, the tool's log file without its array dumps."""
    models.save(model, root / "m.onnx")
    np.savez(root / "m.npz", **models.samples(model))
    with run_folder(root) as folder:
        inputs = CompileInputs(root / "m.onnx", spec, root / "m.npz", 2)
        outcome = await compile_model(toolchain, inputs, folder, Limits(), Hooks())
        (HERE / f"{name}.log").write_text(outcome.console.read_text())
        scrubber = Scrubber(folder.path, toolchain.root)
        lines = (folder.path / "hb_mapper_makertbin.log").read_text().splitlines()
        (HERE / f"{name}.file.log").write_text("\n".join(scrubber.line(x) for x in without_dump(lines)) + "\n")
        print(name, outcome.failure, len(outcome.facts.nodes))


def without_dump(lines):
    """Drop the array dump behind `call build params`."""
    inside = False
    for line in lines:
        if STAMP.search(line):
            inside = "call build params" in line
        elif inside:
            continue
        yield line


async def main():
    """Record all."""
    toolchain = await probe_toolchain(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        await record(toolchain, "policy_int8", models.policy(), CompileSpec(calibration=MAX), root)
        wide = models.policy((225, 512, 512, 12))
        await record(toolchain, "policy_int16", wide, CompileSpec(preset="int16", calibration=MAX), root)
        await record(toolchain, "two_islands", models.two_islands(), CompileSpec(calibration=MAX), root)
        models.save(models.two_islands(), root / "m.onnx")
        with run_folder(root) as folder:
            outcome = await check_placement(toolchain, root / "m.onnx", CompileSpec(), folder, Limits(), Hooks())
            (HERE / "checker.log").write_text(outcome.console.read_text())
    for path in (HERE / "policy_int16.file.log", HERE / "two_islands.file.log"):
        path.unlink()


asyncio.run(main())
