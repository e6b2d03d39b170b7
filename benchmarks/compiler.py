"""What the compiler service costs and gains against the bare tool on the same inputs, in the same run.

    BOARDLIFT_TOOLCHAIN=DIR python benchmarks/compiler.py [--repeat 3] [--json OUT]

Prints, per model: wall seconds of the bare ``hb_mapper makertbin`` with the YAML the service writes, of the service
with a plain and with a warm start (gRPC, upload excluded), the overhead, and the time of a cache hit. Then two variants
(int8, int16) by hand one after the other against both at once through the service, with one slot and with one per core.
Then the bit check of 16 samples, one after the other and as many at once as there are cores.
All times are measured; medians.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from boardlift.v1 import compiler_pb2, compiler_pb2_grpc
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model, prepare_run
from boardlift_compiler.run_folder import RunFolder, run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.server import start_host
from boardlift_compiler.settings import AllSettings, Settings
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec
from boardlift_compiler.toolchain import probe_toolchain, tool_environment
from boardlift_servicekit.artifacts import LocalStore, RemoteStore
from boardlift_servicekit.channels import ChannelSettings, connect
from boardlift_servicekit.server import ServerSettings

ROOT = Path(__file__).resolve().parents[1]
TOOLCHAIN = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")


def load_models() -> Any:
    """Return the seeded model builders of the compiler's tests."""
    path = ROOT / "services/compiler/testdata/build_models.py"
    spec = importlib.util.spec_from_file_location("build_models", path)
    if spec is None or spec.loader is None:
        raise RuntimeError("the model builders are gone")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Case:
    """One model with samples."""

    name: str
    model: Path
    samples: Path
    spec: CompileSpec


def bare(case: Case, root: Path, jobs: int) -> float:
    """Run the bare tool once on exactly what the service would give it; returns wall seconds of the tool alone."""
    with run_folder(root) as folder:
        if prepare_run(CompileInputs(case.model, case.spec, case.samples, jobs), folder, CompileOutcome()) is None:
            raise RuntimeError(f"{case.name} is refused")
        return run_bare(folder)


def run_bare(folder: RunFolder) -> float:
    """Run ``hb_mapper makertbin`` in a prepared folder."""
    started = time.monotonic()
    command = [str(TOOLCHAIN / "bin/hb_mapper"), "makertbin", "-c", "config.yaml", "--model-type", "onnx"]
    environment = tool_environment(TOOLCHAIN, folder)
    subprocess.run(command, cwd=folder.path, env=environment, check=True, capture_output=True)
    return time.monotonic() - started


class Service:
    """A running compiler service."""

    def __init__(self, root: Path, **changes: Any) -> None:
        own = Settings(state_dir=root / "state", toolchain=TOOLCHAIN, work_root=root / "runs")
        self._settings = AllSettings(replace(own, **changes), ServerSettings(), ChannelSettings())
        self._root = root

    async def __aenter__(self) -> Service:
        self.host = await start_host(self._settings)
        self.channel = connect(f"127.0.0.1:{self.host.port}")
        self.stub = compiler_pb2_grpc.CompilerServiceStub(self.channel)
        self.store = RemoteStore(self.channel, LocalStore(self._root / "client"))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()
        await self.host.stop()

    async def request(self, case: Case, salt: int = 0, **variant: Any) -> compiler_pb2.CompileModelRequest:
        """Upload and build a request; another salt is another cache key and the same work."""
        wanted = compiler_pb2.VariantSpec(
            calibration={"method": case.spec.calibration.method, "optimization": case.spec.calibration.optimization},
            compiler={"optimize_level": case.spec.compiler.optimize_level, "advice_us": 10_000_000 + salt},
            **variant,
        )
        return compiler_pb2.CompileModelRequest(
            model=await self.store.put_file(case.model, "application/onnx"),
            calibration=await self.store.put_file(case.samples, "application/x-npz"),
            target="rdk-x5",
            variant=wanted,
        )

    async def compile(self, request: compiler_pb2.CompileModelRequest) -> float:
        """Compile once; returns wall seconds as the caller sees them."""
        started = time.monotonic()
        result = None
        async for event in self.stub.CompileModel(request):
            if event.WhichOneof("event") == "result":
                result = event.result
        if result is None or result.HasField("failure"):
            raise RuntimeError(f"compile failed: {result}")
        return time.monotonic() - started


async def measure_case(case: Case, root: Path, repeat: int, jobs: int) -> dict[str, float | str]:
    """Interleave bare, plain and warm runs, so that a busy machine hits all alike."""
    times: dict[str, list[float]] = {"bare": [], "plain": [], "warm": [], "cached": []}
    async with Service(root / "p", warm_start=False) as plain, Service(root / "w", warm_start=True) as warm:
        await warm.compile(await warm.request(case, 999))
        for k in range(repeat):
            times["bare"].append(await asyncio.to_thread(bare, case, root / "bare", jobs))
            times["plain"].append(await plain.compile(await plain.request(case, k)))
            request = await warm.request(case, k)
            times["warm"].append(await warm.compile(request))
            times["cached"].append(await warm.compile(request))
    row: dict[str, float | str] = {k: round(statistics.median(v), 4) for k, v in times.items()}
    row["overhead_plain_s"] = round(float(row["plain"]) - float(row["bare"]), 3)
    row["overhead_warm_s"] = round(float(row["warm"]) - float(row["bare"]), 3)
    return {"case": case.name, **row}


async def measure_variants(case: Case, root: Path, repeat: int, cores: int) -> dict[str, float | str]:
    """Two variants: by hand one after the other, and both at once through the service."""
    words = {"int8": (), "int16": ("set_all_nodes_int16",)}
    cases = {n: replace_words(case, w) for n, w in words.items()}
    times: dict[str, list[float]] = {"by_hand": [], "one_slot": [], "slot_per_core": []}
    async with Service(root / "1", slots=1) as one, Service(root / "n", slots=cores) as many:
        for service in (one, many):
            await service.compile(await service.request(case, 999))
        for k in range(repeat):
            spent = [await asyncio.to_thread(bare, c, root / "bare", cores) for c in cases.values()]
            times["by_hand"].append(sum(spent))
            for name, service in (("one_slot", one), ("slot_per_core", many)):
                requests = [await service.request(c, k) for c in cases.values()]
                started = time.monotonic()
                await asyncio.gather(*(service.compile(r) for r in requests))
                times[name].append(time.monotonic() - started)
    row: dict[str, float | str] = {k: round(statistics.median(v), 3) for k, v in times.items()}
    for name in ("one_slot", "slot_per_core"):
        row[f"ratio_by_hand_to_{name}"] = round(float(row["by_hand"]) / float(row[name]), 2)
    return {"case": f"{case.name}: int8 + int16", **row}


async def measure_bits(case: Case, models: Any, root: Path, repeat: int, cores: int) -> dict[str, float | str]:
    """Check 16 samples of a build bit by bit: one simulator at a time, and one per core; interleaved."""
    toolchain, samples = await probe_toolchain(TOOLCHAIN), models.samples(models.deep(), 16, seed=3)
    with run_folder(root) as folder:
        inputs = CompileInputs(case.model, case.spec, case.samples, cores)
        built = await compile_model(toolchain, inputs, folder, Limits(), Hooks())
        if built.quantized_model is None:
            raise RuntimeError(f"{case.name} is refused: {built.failure}")
        shutil.copyfile(built.quantized_model, root / "quantized.onnx")
    (root / "model.bin").write_bytes(built.compiled)
    np.savez(root / "heldout.npz", **samples)
    times: dict[int, list[float]] = {1: [], cores: []}
    for k in range(repeat):
        for lanes in sorted(times, reverse=bool(k % 2)):
            asked = SimulateInputs(
                root / "quantized.onnx", root / "model.bin", root / "heldout.npz", None, built.spec, 16,
                asyncio.Semaphore(lanes),
            )  # fmt: skip
            began = [0.0]

            def note(step: str, *_: object, began: list[float] = began) -> None:
                if step == "quantised model":
                    began[0] = time.monotonic()

            with run_folder(root) as folder:
                outcome = await simulate_model(toolchain, asked, folder, note)
            if not outcome.bit_exact:
                raise RuntimeError("the bit check failed")
            times[lanes].append((time.monotonic() - began[0]) / 16)  # from the quantised model's last sample on
    row: dict[str, float | str] = {
        f"s_per_sample_{k}_at_once": round(statistics.median(v), 3) for k, v in times.items()
    }
    row["ratio"] = round(statistics.median(times[1]) / statistics.median(times[cores]), 2)
    return {"case": f"{case.name}: bit check of 16 samples", **row}


def replace_words(case: Case, words: tuple[str, ...]) -> Case:
    """Return the case with other optimization words."""
    return replace_spec(case, case.spec.with_calibration(optimization=words))


def replace_spec(case: Case, spec: CompileSpec) -> Case:
    """Return the case with another spec."""
    return Case(case.name, case.model, case.samples, spec)


async def run(arguments: argparse.Namespace) -> list[dict[str, float | str]]:
    """Measure everything."""
    models, cores = load_models(), len(os.sched_getaffinity(0))
    root = Path(tempfile.mkdtemp(prefix="boardlift-bench-"))
    rows = []
    try:
        for name, model, count, method, level in (
            ("policy 225-512-256-12, 64 samples, max, O3", models.policy(), 64, "max", "O3"),
            ("policy 225-512-256-12, 64 samples, default, O3", models.policy(), 64, "default", "O3"),
            ("conv chain 14x64@56, 16 samples, max, O2", models.deep(), 16, "max", "O2"),
        ):
            slug = f"case{len(rows)}"
            models.save(model, root / f"{slug}.onnx")
            np.savez(root / f"{slug}.npz", **models.samples(model, count))
            spec = CompileSpec(
                calibration=CalibrationSpec(method),
                compiler=CompilerKnobs(level, advice_us=10_000_000),
            )
            case = Case(name, root / f"{slug}.onnx", root / f"{slug}.npz", spec)
            rows.append(await measure_case(case, root / slug, arguments.repeat, max(1, cores // cores)))
            print(json.dumps(rows[-1]), flush=True)
        variants = Case("policy, default, O3", root / "case1.onnx", root / "case1.npz",
                        CompileSpec(calibration=CalibrationSpec("default"),
                                    compiler=CompilerKnobs("O3", advice_us=10_000_000)))  # fmt: skip
        rows.append(await measure_variants(variants, root / "variants", arguments.repeat, cores))
        print(json.dumps(rows[-1]), flush=True)
        deep = Case("conv chain 14x64@56, O1", root / "case2.onnx", root / "case2.npz",
                    CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1")))  # fmt: skip
        rows.append(await measure_bits(deep, models, root / "bits", arguments.repeat, cores))
        print(json.dumps(rows[-1]), flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return rows


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = asyncio.run(run(arguments))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
