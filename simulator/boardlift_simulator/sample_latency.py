"""Latency sampler stand-in: what a small program on a board's own Python runtime would print, one JSON line a frame.

The vendor's tool gives only average, maximum and minimum; percentiles need every frame. On a board the agent's
sampler times single calls; here the same simulated frames that `perf` averages are printed one by one.

    boardlift-sample-latency --model_file M.bin --frame_count N --thread_num T
    {"simulated": true, "frames": N, "threads": T, "unit": "ms"}
    {"ms": 1.401}
    ...
    {"run_ms": 1402.1}
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .errors import CANNOT_OPEN, BoardError
from .play_sick import read_sickness
from .print_report import BANNER
from .read_flags import read_flags
from .run_command import load, simulate_run


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the frames of one run.

    Args:
        arguments: flags of `perf`; sys.argv when absent.

    Returns:
        0 on success, 1 on a refusal.
    """
    words = ["perf", *(sys.argv[1:] if arguments is None else arguments)]
    environment = dict(os.environ)
    work = Path(tempfile.mkdtemp(prefix="boardlift-simulator-"))
    try:
        options = read_flags(words)
        sick = read_sickness(environment)
        if len(options.model_files) != 1:
            raise BoardError(CANNOT_OPEN, "model_file must name one file")
        loaded = load(Path(options.model_files[0]), work)
        sick.hang()
        sick.start()
        frames = simulate_run(loaded, options, sick, environment, work)
        threads = max(1, min(8, options.number["thread_num"]))
        total = int(frames.latency_ms.size)
        print(json.dumps({"simulated": True, "banner": BANNER, "frames": total, "threads": threads, "unit": "ms"}))
        for index, value in enumerate(frames.latency_ms):
            print(f'{{"ms": {value:.6f}}}')
            sick.maybe_die(index + 1, total)
        if environment.get("BOARDLIFT_SIMULATOR_REALTIME") == "1":
            sys.stdout.flush()
            time.sleep(frames.run_ms / 1000)
        print(json.dumps({"run_ms": round(frames.run_ms, 6)}))
        return 0
    except BoardError as error:
        print(json.dumps({"error": error.message, "code": error.code}))
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
