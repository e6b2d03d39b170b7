"""Times single calls on the board's own Python runtime and prints one JSON line per frame.

Runs in the system Python of the board image (3.10), where `hbm_runtime` (RDK OS 3.5 and newer) or `hobot_dnn` is
installed; needs numpy and nothing of ours. Random inputs. The Python layer costs about 0.5 to 0.8 ms a frame on top of
the C path; the first line says which runtime was used, so that nobody compares the two.

    sample_latency.py --model_file=M.bin --frame_count=1000 --thread_num=1
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

WARMUP = 10
Run = Callable[[], Any]


def load_hbm(path: str) -> tuple[Run, str]:
    """Newer runtime: returns a function that runs one frame."""
    from hbm_runtime import HB_HBMRuntime  # type: ignore[import-not-found]

    model = HB_HBMRuntime(path)
    name = model.model_names[0]
    feeds = {}
    for tensor in model.input_names[name]:
        shape = [int(d) for d in model.input_shapes[name][tensor]]
        kind = str(model.input_dtypes[name][tensor]).rpartition(".")[2].lower()
        feeds[tensor] = make_input(shape, kind)
    return lambda: model.run({name: feeds}), "hbm_runtime"


def load_pyeasy(path: str) -> tuple[Run, str]:
    """Older runtime: returns a function that runs one frame."""
    from hobot_dnn import pyeasy_dnn  # type: ignore[import-not-found]

    model = pyeasy_dnn.load(path)[0]
    feeds = []
    for tensor in model.inputs:
        properties = tensor.properties
        shape = [int(d) for d in properties.shape]
        picture = "NV12" in str(properties.tensor_type)
        if picture:
            height, width = (shape[2], shape[3]) if str(properties.layout) == "NCHW" else (shape[1], shape[2])
            shape = [height * width * 3 // 2]
        feeds.append(make_input(shape, "u8" if picture else str(properties.dtype)))
    return lambda: model.forward(feeds), "pyeasy_dnn"


def make_input(shape: list[int], kind: str) -> Any:
    """Random values of the tensor's type."""
    rng = np.random.default_rng(0)
    names = {
        "f32": "float32",
        "s8": "int8",
        "u8": "uint8",
        "s16": "int16",
        "s32": "int32",
        "nv12": "uint8",
        "y": "uint8",
    }
    dtype = np.dtype(names.get(kind, kind))
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def load(path: str) -> tuple[Run, str]:
    """The newest runtime that is installed."""
    for loader in (load_hbm, load_pyeasy):
        try:
            return loader(path)
        except ImportError:
            continue
    raise SystemExit('{"error": "neither hbm_runtime nor hobot_dnn is installed in this Python"}')


def time_frames(run: Run, frames: int, threads: int) -> tuple[list[float], float]:
    """Latency of every frame in milliseconds, in order of completion, and the duration of the whole run."""
    times: list[float] = []
    lock, left = threading.Lock(), [frames]

    def work() -> None:
        while True:
            with lock:
                if left[0] <= 0:
                    return
                left[0] -= 1
            start = time.perf_counter()
            run()
            taken = (time.perf_counter() - start) * 1000
            with lock:
                times.append(taken)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return times, (time.perf_counter() - start) * 1000


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_file", required=True)
    parser.add_argument("--frame_count", type=int, default=200)
    parser.add_argument("--thread_num", type=int, default=1)
    options = parser.parse_args()
    run, runtime = load(options.model_file)
    for _ in range(WARMUP):
        run()
    times, run_ms = time_frames(run, options.frame_count, options.thread_num)
    first = {"simulated": False, "frames": len(times), "threads": options.thread_num, "unit": "ms", "runtime": runtime}
    print(json.dumps(first))
    for value in times:
        print(f'{{"ms": {value:.6f}}}')
    print(json.dumps({"run_ms": round(run_ms, 6)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
