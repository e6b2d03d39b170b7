"""What the tool prints, line by line, in the vendor's layout. Every start carries a line that says SIMULATED."""

from __future__ import annotations

import time

import numpy as np

from . import __version__
from .describe_tensors import TensorFacts
from .model_latency import Frames

BANNER = (
    f"[SIMULATED] boardlift-simulator {__version__}: no board, no BPU; outputs by the vendor's x86 simulator, "
    "latency = static estimate + stated host cost"
)
_ENGINES = {
    "compiled": "the compiled code, in the vendor's simulator",
    "runtime": "the quantised model in the vendor's ONNX runtime; says nothing about the compiled code",
}
RULE = "-" * 69
HBRT, DNN = "3.15.55.0", "1.24.5"
OLD_HBRT, OLD_DNN = "3.15.47.0", "1.23.5"
WINDOW = 200


def start_lines(command: str, model_name: str, metadata: dict[str, str], load_ms: float, skew: bool) -> list[str]:
    """Lines up to the model load.

    Args:
        command: the command line as typed.
        model_name: name inside the file.
        metadata: the build's record; its versions are printed.
        load_ms: simulated load time.
        skew: print a runtime older than the builder.
    """
    hbrt, dnn = (OLD_HBRT, OLD_DNN) if skew else (HBRT, DNN)
    now = time.strftime("(%Y-%m-%d,%H:%M:%S.000.000)", time.gmtime())
    lines = [
        command,
        BANNER,
        "[BPU_PLAT]BPU Platform Version(1.3.6)! soc info(x5)",
        f"[HBRT] set log level as 0. version = {hbrt}",
        f"[DNN] Runtime version = {dnn}_({hbrt.rsplit('.', 1)[0]} HBRT)",
        f"[A][DNN][packed_model.cpp:247][Model]{now} [HorizonRT] The model builder version = "
        f"{metadata.get('BUILDER_VERSION', 'unknown')}",
    ]
    built = metadata.get("HBDK_RUNTIME_VERSION", "").strip()
    if built and built != hbrt:
        lines.append(
            f"[W][DNN]bpu_model_info.cpp:491][Version]{now} Model: {model_name}. Inconsistency between the hbrt "
            f"library version {hbrt} and the model build version {built} detected, in order to ensure correct model "
            "results, it is recommended to use compilation tools and the BPU SDK from the same OpenExplorer package."
        )
    lines.append(f"Load model to DDR cost {load_ms:.3f}ms.")
    return lines


def engine_line(engine: str) -> str:
    """The line of `infer` that says what computes the outputs."""
    return f"[SIMULATED] engine {engine}: {_ENGINES[engine]}"


def model_info_lines(model_name: str, inputs: list[TensorFacts], outputs: list[TensorFacts]) -> list[str]:
    """The body of `model_info`."""
    lines = ["This model file has 1 model:", f"[{model_name}]\t", RULE, f"[model name]: {model_name}", ""]
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for index, tensor in enumerate(tensors):
            lines += [f"{kind}[{index}]: ", *_tensor_lines(tensor), ""]
    return [*lines, RULE]


def _tensor_lines(tensor: TensorFacts) -> list[str]:
    lines = [f"name: {tensor.name}"]
    if tensor.source:
        lines.append(f"input source: {tensor.source}")
    lines += [
        f"valid shape: {_tuple(tensor.valid)}",
        f"aligned shape: {_tuple(tensor.aligned)}",
        f"aligned byte size: {tensor.size_bytes}",
        f"tensor type: {tensor.type}",
        f"tensor layout: {tensor.layout}",
        f"quanti type: {'SCALE' if tensor.scale else 'NONE'}",
        f"stride: {_tuple(tensor.stride)}",
    ]
    if tensor.scale:
        lines.append("scale data: " + "".join(f"{value:g}," for value in tensor.scale))
        lines.append(f"quantizeAxis: {tensor.axis}")
    return lines


def _tuple(values: tuple[int, ...]) -> str:
    return "(" + "".join(f"{value}," for value in values) + ")"


def perf_lines(frames: Frames, threads: int) -> list[str]:
    """The body of `perf`."""
    latency = frames.latency_ms
    lines = []
    for end in range(WINDOW, latency.size + 1, WINDOW):
        part = latency[end - WINDOW : end]
        lines.append(
            f"Frame count: {end},  Thread Average: {part.mean():.6f} ms,  thread max latency: {part.max():.6f} ms,  "
            f"thread min latency: {part.min():.6f} ms,  FPS: {1000 * part.size * threads / part.sum():.6f}"
        )
    total = float(np.sum(latency))
    return [
        *lines,
        "",
        "Running condition:",
        f"  Thread number is: {threads}",
        f"  Frame count   is: {latency.size}",
        f"  Program run time: {frames.run_ms:.6f} ms",
        "Perf result:",
        f"  Frame totally latency is: {total:.6f} ms",
        f"  Average    latency    is: {total / latency.size:.6f} ms",
        f"  Frame      rate       is: {1000 * latency.size / frames.run_ms:.6f} FPS",
    ]
