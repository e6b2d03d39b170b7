"""`python -m boardlift_board_agent.cpu_baseline`: latency of the float model in onnxruntime on this machine.

A process of its own, so that the agent stays alive whatever the model does. Prints the sampler's lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from boardlift.errors import BoardliftError, PreconditionError

from boardlift_board_agent.load_samples import load_arrays


def main(arguments: Sequence[str] | None = None) -> int:
    """Times single calls.

    Args:
        arguments: MODEL SAMPLES --frames N --threads T --warmup N --limit SECONDS.

    Returns:
        0, or 1 with one line of JSON that says why.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--limit", type=float, default=20.0)
    options = parser.parse_args(arguments)
    try:
        times = time_model(
            options.model, options.samples, options.frames, options.threads, options.warmup, options.limit
        )
    except BoardliftError as error:
        print(json.dumps({"error": error.message, "reason": error.reason}))
        return 1
    print(json.dumps({"simulated": False, "frames": len(times), "threads": options.threads, "unit": "ms"}))
    for value in times:
        print(f'{{"ms": {value:.6f}}}')
    print(json.dumps({"run_ms": round(sum(times), 6)}))
    return 0


def time_model(model: Path, samples: Path, frames: int, threads: int, warmup: int, limit_s: float) -> list[float]:
    """Latency of single calls in milliseconds.

    Args:
        model: float ONNX model.
        samples: `.npz`, one array per input `[N, ...]`.
        frames: calls that count.
        threads: intra-op threads.
        warmup: calls that do not count.
        limit_s: stop after this time, with what there is.

    Raises:
        PreconditionError: onnxruntime is not installed, or it does not take the model.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise PreconditionError(
            "onnxruntime is not installed.",
            reason="ONNXRUNTIME_MISSING",
            remedy="Install boardlift-board-agent[baseline].",
        ) from error
    arrays = load_arrays(samples, "held-out samples", 16)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
        inputs = session.get_inputs()
        count = min(len(arrays[i.name]) for i in inputs)
        shapes = {i.name: [d if isinstance(d, int) else 1 for d in i.shape] for i in inputs}
        feeds = [{i.name: arrays[i.name][k].reshape(shapes[i.name]) for i in inputs} for k in range(count)]
        for k in range(warmup):
            session.run(None, feeds[k % count])
    except Exception as error:  # the runtime's errors share no base class; this is the process's outermost boundary
        raise PreconditionError(
            f"The float model does not run: {error}",
            reason="BASELINE_REFUSED",
            remedy="Run the model in onnxruntime on a PC first: it refuses it there too.",
        ) from error
    times: list[float] = []
    end = time.monotonic() + limit_s
    while len(times) < frames and time.monotonic() < end:
        feed = feeds[len(times) % count]
        start = time.perf_counter()
        session.run(None, feed)
        times.append((time.perf_counter() - start) * 1000)
    return times


if __name__ == "__main__":
    sys.exit(main())
