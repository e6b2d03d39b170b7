"""model_info, infer, perf: one function each, and the entry that picks one."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .describe_tensors import TensorFacts, describe_inputs, describe_outputs
from .dump_outputs import dump_outputs
from .errors import CANNOT_OPEN, INVALID_ARGUMENT, INVALID_MODEL, BoardError
from .execute_model import choose_engine, execute_compiled, execute_runtime
from .model_latency import DEFAULT_SIGMA, FrameCost, Frames, frame_cost, simulate_frames
from .play_sick import Sickness, read_sickness
from .print_report import BANNER, DNN, engine_line, model_info_lines, perf_lines, start_lines
from .read_flags import Options, read_flags
from .read_inputs import random_inputs, read_inputs
from .read_model import CompiledModel, read_model
from .vendor_tools import Subgraph, describe_subgraphs, estimate_latency_us
from .write_profile import write_profile

_USAGE = "usage: hrt_model_exec {model_info|infer|perf} --model_file=FILE [flags]   (-v version, -h help)"
_MAX_FRAMES = 200_000


@dataclass(frozen=True)
class Loaded:
    """A model ready to run."""

    model: CompiledModel
    subgraphs: tuple[Subgraph, ...]
    hbm: Path
    inputs: list[TensorFacts]
    outputs: list[TensorFacts]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line.

    Args:
        arguments: words after the program; sys.argv when absent.

    Returns:
        0 on success, 1 on any refusal.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    environment = dict(os.environ)
    if "-v" in words or "--version" in words:
        print(f"hrt_model_exec {DNN}", BANNER, sep="\n")
        return 0
    if not words or "-h" in words or "--help" in words:
        print(BANNER, _USAGE, sep="\n")
        return 0
    work = Path(tempfile.mkdtemp(prefix="boardlift-simulator-"))
    try:
        options = read_flags(words)
        if not options.command:
            raise BoardError(INVALID_ARGUMENT, _USAGE)
        return _run(options, words, read_sickness(environment), environment, work)
    except BoardError as error:
        print(BANNER)
        print(f"[E][DNN] {error.message}, error code:{error.code}")
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(options: Options, words: list[str], sick: Sickness, environment: dict[str, str], work: Path) -> int:
    files = options.model_files
    if len(files) != 1:
        raise BoardError(CANNOT_OPEN, f"model_file names {len(files)} files; the stand-in takes one")
    loaded = load(Path(files[0]), work)
    wanted = options.text["model_name"]
    if wanted and wanted != loaded.model.name:
        raise BoardError(INVALID_ARGUMENT, f"model name {wanted} is not in the file")
    print('I0000 00:00:00.000000     1 vlog_is_on.cc:197] RAW: Set VLOG level for "*" to 3', file=sys.stderr)
    load_ms = 20 + loaded.model.path.stat().st_size / 120_000
    _print(
        start_lines(
            " ".join(["hrt_model_exec", *words]), loaded.model.name, loaded.model.metadata, load_ms, sick.has("skew")
        )
    )
    sick.hang()
    if options.command == "model_info":
        _print(model_info_lines(loaded.model.name, loaded.inputs, loaded.outputs))
        return 0
    sick.start()
    if options.command == "infer":
        return _infer(options, loaded, sick, environment, work)
    return _perf(options, loaded, sick, environment, work)


def load(path: Path, work: Path) -> Loaded:
    """Reads a model and what the BPU side knows about it.

    Args:
        path: the `.bin`.
        work: scratch folder.

    Raises:
        BoardError: no such model, or one for another chip.
    """
    model = read_model(path)
    hbm = work / "model.hbm"
    hbm.write_bytes(model.hbm)
    subgraphs = describe_subgraphs(hbm, work) if model.hbm else ()
    for graph in subgraphs:
        if graph.march != "B25E":
            raise BoardError(
                INVALID_MODEL, f"The model's march is {model.metadata.get('MARCH', graph.march)}, not bayes-e"
            )
    return Loaded(model, subgraphs, hbm, describe_inputs(model, subgraphs), describe_outputs(model, subgraphs))


def run_once(loaded: Loaded, feeds: dict[str, NDArray[Any]], engine: str, work: Path) -> dict[str, NDArray[Any]]:
    """Runs one frame.

    Args:
        loaded: the model.
        feeds: input name -> array.
        engine: `compiled` or `runtime`.
        work: scratch folder.

    Returns:
        All tensors the engine exposes; outputs included.
    """
    if engine == "runtime":
        return execute_runtime(loaded.model, loaded.inputs, feeds)
    return execute_compiled(loaded.model, loaded.subgraphs, feeds, loaded.hbm, work)


def _infer(options: Options, loaded: Loaded, sick: Sickness, environment: dict[str, str], work: Path) -> int:
    if not options.input_files:
        raise BoardError(INVALID_ARGUMENT, "infer needs input_file")
    feeds = read_inputs(options.input_files, loaded.inputs)
    for line in ("get model handle success", "prepare input tensor success!", "get model output count success"):
        print(f"I0000 00:00:00.000000     1 function_util.cpp] {line}", file=sys.stderr)
    engine = choose_engine(loaded.model, environment.get("BOARDLIFT_SIMULATOR_ENGINE", "auto"))
    print(engine_line(engine))
    cost = _cost(loaded, work)
    for frame in range(max(1, options.number["frame_count"])):
        sick.maybe_die(frame + 1, 2)
        outputs = run_once(loaded, feeds, engine, work)
        print(f"---------------------Frame {frame} begin---------------------")
        print(f"Infer time: {cost.total_ms * sick.words.get('slow', 1.0):.3f} ms")
        print(f"---------------------Frame {frame} end---------------------")
    if options.switch["enable_dump"]:
        folder = Path(options.text["dump_path"] or ".")
        if not folder.is_dir():
            raise BoardError(INVALID_ARGUMENT, "dump_path does not exist")
        if sick.spoils():
            outputs = {**outputs, **{f.name: _spoil(outputs[f.name]) for f in loaded.outputs}}
        dump_outputs(outputs, loaded.outputs, folder, options, sick.has("misread"), sick.has("diskfull"))
    return 0


def _spoil(values: NDArray[Any]) -> NDArray[Any]:
    flat = np.array(values).reshape(-1)
    flat[::16] = flat[::16] // 2 + 5 if flat.dtype.kind in "iu" else flat[::16] * 2 + 1
    return flat.reshape(values.shape)


def _perf(options: Options, loaded: Loaded, sick: Sickness, environment: dict[str, str], work: Path) -> int:
    if options.input_files:
        read_inputs(options.input_files, loaded.inputs)
    else:
        random_inputs(loaded.inputs, 0)
    frames = simulate_run(loaded, options, sick, environment, work)
    threads = _threads(options)
    for line in perf_lines(frames, threads):
        print(line)
        if line.startswith("Frame count:"):
            sick.maybe_die(int(line.split()[2].rstrip(",")), frames.latency_ms.size)
    sick.maybe_die(frames.latency_ms.size, frames.latency_ms.size)
    if environment.get("BOARDLIFT_SIMULATOR_REALTIME") == "1":
        sys.stdout.flush()
        time.sleep(frames.run_ms / 1000)
    if options.text["profile_path"]:
        write_profile(Path(options.text["profile_path"]), loaded.model, _estimates(loaded, work), frames, threads)
    return 0


def simulate_run(loaded: Loaded, options: Options, sick: Sickness, environment: dict[str, str], work: Path) -> Frames:
    """Frame times of a perf run.

    Args:
        loaded: the model.
        options: frame_count, perf_time and thread_num.
        sick: what goes wrong.
        environment: BOARDLIFT_SIMULATOR_SEED and BOARDLIFT_SIMULATOR_JITTER.
        work: scratch folder.
    """
    cost = _cost(loaded, work)
    threads = _threads(options)
    count = options.number["frame_count"] or 200
    if options.number["perf_time"] > 0:
        count = int(options.number["perf_time"] * 60_000 / max(cost.bpu_ms, cost.total_ms / threads))
    sigma = sick.words.get("unstable", float(environment.get("BOARDLIFT_SIMULATOR_JITTER", DEFAULT_SIGMA)))
    seed = int(environment.get("BOARDLIFT_SIMULATOR_SEED", zlib.crc32(loaded.model.name.encode())))
    return simulate_frames(
        cost,
        max(1, min(count, _MAX_FRAMES)),
        threads,
        seed,
        sigma,
        sick.words.get("slow", 1.0),
        sick.words.get("throttled", 1.0),
    )


def _threads(options: Options) -> int:
    return max(1, min(8, options.number["thread_num"]))


def _cost(loaded: Loaded, work: Path) -> FrameCost:
    floats = sum(int(np.prod(f.valid)) for f in loaded.outputs if f.dtype == "FLOAT")
    return frame_cost(_estimates(loaded, work), floats)


def _estimates(loaded: Loaded, work: Path) -> dict[str, float]:
    return estimate_latency_us(loaded.hbm, work) if loaded.subgraphs else {}


def _print(lines: Sequence[str]) -> None:
    print("\n".join(lines))
