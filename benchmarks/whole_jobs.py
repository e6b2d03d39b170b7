"""Whole jobs of two variants against the same two variants by hand, one after the other, in the same run.

    BOARDLIFT_TOOLCHAIN=DIR python benchmarks/whole_jobs.py [--rounds 2] [--only policy|moe] [--json OUT]

By hand: the model is exported again for opset 11 with a fixed batch and its other outputs are cut off, then
`hb_mapper checker` once and `hb_mapper makertbin` per variant, with `calibration_type: default`, O3 and the same 64
samples. The hand proves nothing.

boardlift: one `boardlift run` (the whole command) against a local stack that runs already, without a board: checks the
data, transforms and proves, checks, compiles both variants, simulates both on held-out samples, bit check, verdict.
Every round changes a weight, so that nothing comes from the cache, and swaps who goes first. The first job of a stack
starts the tool's warm parent. All figures are measured. Processor seconds say what wall time on a busy machine can't;
load is the 1-minute average.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = Path(__file__).resolve().parents[1]
TOOLCHAIN = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or ROOT / ".boardlift/toolchain")
BOARDLIFT = Path(sys.executable).parent / "boardlift"
VARIANTS = {"int16": "set_all_nodes_int16", "int8": ""}
CALIBRATION, HELDOUT = 64, 128
sys.path.insert(0, str(ROOT / "tests"))

from support import policy_models  # type: ignore[import-not-found]  # noqa: E402 - beside the tests

CONFIG = """model_parameters:
  onnx_model: model.onnx
  march: bayes-e
  working_dir: out
  output_model_file_prefix: model
input_parameters:
  input_type_train: featuremap
  input_layout_train: NCHW
  input_type_rt: featuremap
  input_layout_rt: NCHW
calibration_parameters:
  cal_data_dir: samples_f32
  cal_data_type: float32
  calibration_type: default
  optimization: "{words}"
compiler_parameters:
  optimize_level: O3
"""


def load(path: str) -> Any:
    """Return a module of the repository that lies in no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[Path(path).stem] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def build_case(name: str, number: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return the model as its owner has it, another one per round, and samples `[N, width]`."""
    if name == "policy":
        model = load("examples/quadruped_policy/build_policy.py").build_model()
    else:
        model = policy_models.moe_policy(grouped=True)
    bias = next(w for w in model.graph.initializer if len(w.dims) == 1 and w.data_type == onnx.TensorProto.FLOAT)
    values = numpy_helper.to_array(bias).copy()
    values[0] += np.float32(1e-3) * number
    bias.CopyFrom(numpy_helper.from_array(values, bias.name))
    width = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    return model, policy_models.observations(width, CALIBRATION + HELDOUT, 1)


def bring_down(model: onnx.ModelProto, folder: Path) -> None:
    """Write the model as somebody would by hand: wanted output, batch 1, opset 11."""
    source = folder / "as_exported.onnx"
    onnx.save(model, source)
    if len(model.graph.output) > 1:
        onnx.utils.extract_model(str(source), str(source), ["obs"], ["actions"])
    loaded = onnx.load(source)
    for value in (*loaded.graph.input, *loaded.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    del loaded.graph.value_info[:]
    # As a second export with opset_version=11 would: nothing else of Gemm, Elu, Sub and Div has changed since then.
    # onnx.version_converter has no way down for Sub.
    loaded.opset_import[0].version = 11
    loaded.ir_version = 6
    onnx.checker.check_model(loaded, full_check=True)
    onnx.save(loaded, folder / "model.onnx")


def run_tool(folder: Path, *words: str) -> float:
    """Run the bare tool; returns its wall seconds."""
    environment = {"PATH": f"{TOOLCHAIN}/bin:/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
    started = time.monotonic()
    command = [str(TOOLCHAIN / "bin/hb_mapper"), *words, "--model-type", "onnx"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"by hand it failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return time.monotonic() - started


def cpu_seconds(roots: list[int]) -> float:
    """Return the processor seconds of these processes and all below them, the ended ones included."""
    parents, spent = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(path.parent.name)] = int(words[1])
        spent[int(path.parent.name)] = sum(int(w) for w in words[11:15])
    family = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(spent.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def by_hand(model: onnx.ModelProto, samples: np.ndarray, root: Path) -> dict[str, float]:
    """Do it by hand; returns wall seconds per step."""
    seconds: dict[str, float] = {}
    folder = root / "hand"
    (folder / "samples_f32").mkdir(parents=True)
    started = time.monotonic()
    bring_down(model, folder)
    for index, sample in enumerate(samples[:CALIBRATION]):
        sample.tofile(folder / f"samples_f32/{index:03d}.bin")
    seconds["prepare"] = time.monotonic() - started
    seconds["checker"] = run_tool(folder, "checker", "--march", "bayes-e", "--model", "model.onnx")
    for name, words in VARIANTS.items():
        (folder / "config.yaml").write_text(CONFIG.format(words=words))
        seconds[name] = run_tool(folder, "makertbin", "-c", "config.yaml")
        if not (folder / "out/model.bin").is_file():
            raise SystemExit("by hand there is no compiled model")
        (folder / "out").rename(folder / f"out_{name}")
    return seconds


def by_boardlift(stack: Any, model: onnx.ModelProto, samples: np.ndarray, root: Path) -> tuple[float, dict[str, float]]:
    """Run the job; returns the command's wall seconds, and those of each stage."""
    folder = root / "job"
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "data.npz", obs=samples[:, None])
    environment = {**os.environ, "BOARDLIFT_SERVER": stack.address("orchestrator")}
    command = [str(BOARDLIFT), "run", str(folder / "model.onnx"), "--data", str(folder / "data.npz")]
    command += ["--outputs", "actions", "--calibration-samples", str(CALIBRATION), "--heldout-samples", str(HELDOUT)]
    command += [part for name in VARIANTS for part in ("--variant", name)]
    command += ["--calibration", "default", "--level", "O3", "--no-board", "--json"]
    started = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    if done.returncode not in (0, 1):
        raise SystemExit(f"the job failed: {done.stderr[-2000:]}")
    job = json.loads(done.stdout)["id"]
    shown = subprocess.run(
        [str(BOARDLIFT), "jobs", "show", job, "--json"], env=environment, capture_output=True, text=True, check=True
    )
    stages = {}
    for stage in json.loads(shown.stdout)["stages"]:
        if stage["ended"]:
            began, ended = (datetime.fromisoformat(stage[key].replace("Z", "+00:00")) for key in ("started", "ended"))
            stages[f"{stage['stage']} {stage['variant']}".strip()] = (ended - began).total_seconds()
    return seconds, stages


def measure(stack: Any, name: str, number: int) -> dict[str, Any]:
    """Measure one case once."""
    model, samples = build_case(name, number)
    services = [process.child.pid for process in stack.processes.values()]
    hand: dict[str, float] = {}
    stages: dict[str, float] = {}
    seconds, cpu = 0.0, {}
    with tempfile.TemporaryDirectory(prefix="boardlift-bench-") as folder:
        load = os.getloadavg()[0]
        for who in ("boardlift", "hand") if number % 2 else ("hand", "boardlift"):
            own, theirs = resource.getrusage(resource.RUSAGE_CHILDREN), cpu_seconds(services)
            if who == "hand":
                hand = by_hand(model, samples, Path(folder))
            else:
                seconds, stages = by_boardlift(stack, model, samples, Path(folder))
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu[who] = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
            cpu[who] += cpu_seconds(services) - theirs if who == "boardlift" else 0.0
    total = sum(hand.values())
    return {
        "case": name,
        "round": number,
        "by_hand_s": round(total, 1),
        "boardlift_s": round(seconds, 1),
        "ratio": round(total / seconds, 2),
        "by_hand_cpu_s": round(cpu["hand"], 1),
        "boardlift_cpu_s": round(cpu["boardlift"], 1),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "by_hand_steps_s": {k: round(v, 1) for k, v in hand.items()},
        "stages_s": {k: round(v, 1) for k, v in stages.items()},
    }


def main() -> None:
    """Print one line per case and round, and the median ratio per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=("policy", "moe"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    module, rows = load("deploy/local/stack.py"), []
    cases = [arguments.only] if arguments.only else ["policy", "moe"]
    with (
        tempfile.TemporaryDirectory(prefix="boardlift-bench-") as state,
        module.running(module.Stack(Path(state), module.free_ports())) as stack,
    ):
        for number in range(1, arguments.rounds + 1):
            for name in cases:
                rows.append(measure(stack, name, number))
                print(json.dumps(rows[-1]), flush=True)
    for name in cases:
        ratios = [row["ratio"] for row in rows if row["case"] == name]
        print(f"{name}: boardlift {statistics.median(ratios):.2f} times as fast as by hand, {len(ratios)} rounds")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
