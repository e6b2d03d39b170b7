"""`--profile_path`: profiler.log (two JSON blocks) and profiler.csv, as the tool writes on a clean exit.

The layout of profiler.log is the documented one; no sample of profiler.csv was available, its columns are ours.
"""

from __future__ import annotations

import json
from pathlib import Path

from .errors import INVALID_ARGUMENT, BoardError
from .model_latency import Frames
from .read_model import CompiledModel


def write_profile(
    folder: Path, model: CompiledModel, estimates_us: dict[str, float], frames: Frames, threads: int
) -> None:
    """Writes both files.

    Args:
        folder: must exist.
        model: its nodes become rows.
        estimates_us: vendor's estimate per subgraph in microseconds.
        frames: the run.
        threads: thread count of the run.

    Raises:
        BoardError: the folder is absent.
    """
    if not folder.is_dir():
        raise BoardError(INVALID_ARGUMENT, "profile_path does not exist")
    latency = frames.latency_ms
    mean = float(latency.mean())
    bpu_ms = min(mean, sum(estimates_us.values()) / 1000)
    host = [node.name for node in model.nodes if node.op_type != "BPU"]
    nodes = {name: us / 1000 for name, us in estimates_us.items()}
    nodes |= {name: (mean - bpu_ms) / len(host) for name in host}

    def times(base: float) -> dict[str, float]:
        part = base * latency / mean
        return {"avg_time": float(part.mean()), "max_time": float(part.max()), "min_time": float(part.min())}

    head = {
        "perf_result": {"FPS": 1000 * latency.size / frames.run_ms, "average_latency": mean},
        "running_condition": {
            "core_id": 0,
            "frame_count": int(latency.size),
            "model_name": model.name,
            "run_time": frames.run_ms,
            "thread_num": threads,
        },
    }
    body = {
        "processor_latency": {
            "BPU_inference_time_cost": times(bpu_ms),
            "CPU_inference_time_cost": times(mean - bpu_ms),
        },
        "model_latency": {name: times(base) for name, base in nodes.items()},
        "task_latency": {"TaskPendingTime": times(0.01), "TaskRunningTime": times(mean)},
    }
    (folder / "profiler.log").write_text(json.dumps(head, indent=2) + "\n***\n" + json.dumps(body, indent=2) + "\n")
    rows = [(name, times(base)) for name, base in nodes.items()]
    lines = [f"{name},{t['avg_time']:.6f},{t['max_time']:.6f},{t['min_time']:.6f}" for name, t in rows]
    (folder / "profiler.csv").write_text("\n".join(["name,avg_time,max_time,min_time", *lines]) + "\n")
