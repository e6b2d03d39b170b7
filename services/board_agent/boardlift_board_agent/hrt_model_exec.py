"""Command lines of the vendor's `hrt_model_exec`. Pure: nothing is started here.

Flags have underscores; lists are separated by commas, so no path may hold one. All paths are chosen by the agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boardlift.errors import InvalidInputError

MAX_THREADS = 8


@dataclass(frozen=True)
class PerfOptions:
    """How a perf run goes."""

    frames: int
    """Frames to run, at least 1."""
    threads: int = 1
    """1 to 8; the tool clips larger values silently, we refuse them."""
    core: int = 0
    """0 any, 1 the X5's only core."""
    profile: Path | None = None
    """Folder for profiler.log and profiler.csv; must exist."""


def model_info_command(tool: str, model: Path) -> tuple[str, ...]:
    """Tensors of a compiled model."""
    return (tool, "model_info", f"--model_file={_path(model)}")


def infer_command(tool: str, model: Path, inputs: Sequence[Path], dump: Path) -> tuple[str, ...]:
    """One frame on given inputs, outputs dumped raw.

    Args:
        tool: the program.
        model: compiled model.
        inputs: one file per input, in the compiled model's order.
        dump: existing folder for `model_infer_output_{index}_{name}.bin`.
    """
    return (
        tool,
        "infer",
        f"--model_file={_path(model)}",
        f"--input_file={','.join(_path(p) for p in inputs)}",
        "--enable_dump=true",
        "--dump_format=bin",
        f"--dump_path={_path(dump)}",
    )


def perf_command(tool: str, model: Path, options: PerfOptions) -> tuple[str, ...]:
    """Many frames on random inputs.

    Raises:
        InvalidInputError: PERF_OPTIONS_INVALID.
    """
    if not 1 <= options.threads <= MAX_THREADS or options.frames < 1:
        raise InvalidInputError(
            f"Perf takes 1 to {MAX_THREADS} threads and at least one frame.",
            reason="PERF_OPTIONS_INVALID",
            remedy="Ask for threads in that range and for frames.",
            metadata={"threads": str(options.threads), "frames": str(options.frames)},
        )
    command = (
        tool,
        "perf",
        f"--model_file={_path(model)}",
        f"--frame_count={options.frames}",
        f"--thread_num={options.threads}",
        f"--core_id={options.core}",
    )
    return (*command, f"--profile_path={_path(options.profile)}") if options.profile else command


def sampler_command(sampler: Sequence[str], model: Path, options: PerfOptions) -> tuple[str, ...]:
    """Our own per-frame timer: same flags, one JSON line per frame."""
    return (
        *sampler,
        f"--model_file={_path(model)}",
        f"--frame_count={options.frames}",
        f"--thread_num={options.threads}",
    )


def _path(path: Path) -> str:
    text = str(path)
    if "," in text or any(c.isspace() for c in text):
        raise InvalidInputError(
            "A path for the tool may hold no comma and no blank.",
            reason="TOOL_PATH_INVALID",
            remedy="Put the work folder (BOARDLIFT_STATE_DIR) under a path without them.",
        )
    return text
