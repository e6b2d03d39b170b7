"""Build a dataset from robot logs: `steps.jsonl`, one JSON object per control step.

Steps count while the policy was in charge (its state field says so). A sample stacks `frames` consecutive frames in the
order in which the robot's code feeds them. A window never crosses a gap in time, a change of state, a bad line or the
end of a log. Every drawn sample is traced to file and lines; everything left out is counted with its reason.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from boardlift._local_files import unreadable
from boardlift.datasets.archive import Dataset
from boardlift.datasets.draw import SplitRequest, Window, draw_windows
from boardlift.errors import InvalidInputError

ORDERS = ("oldest-first", "newest-first")
MAX_LINE_CHARACTERS = 1 << 20
_LISTED_LINES = 20
_LISTED_VALUES = 12
_LISTED_CHARACTERS = 40

Frame = npt.NDArray[np.float32]


@dataclass(frozen=True)
class StepsOptions:
    """How to read the logs and stack the frames."""

    input_name: str = "obs"
    """Model input the samples are for."""
    frames: int = 5
    """Frames of one sample."""
    order: str = "oldest-first"
    """Order of the frames in a sample: "oldest-first" or "newest-first", as the robot's code stacks them."""
    terms: tuple[int, ...] = ()
    """Sizes of the observation's terms when each term keeps its own history (all frames of term 1, then of term 2...);
    empty when whole frames follow each other."""
    states: tuple[str, ...] = ("RL",)
    """States in which the policy was in charge."""
    state_field: str = "state"
    """Field with the state."""
    observation_field: str = "obs_single"
    """Field with one observation frame."""
    time_field: str = "t"
    """Field with the time in seconds."""
    gap_factor: float = 1.5
    """A pause longer than this many control periods (the log's median) is a gap."""
    synthetic: bool = False
    """True when the logs were generated rather than recorded."""


@dataclass
class _Log:
    """What was read from one log; line numbers count from 1."""

    name: str
    sha256: str
    size_bytes: int
    lines: int = 0
    period_s: float = 0.0
    runs: list[list[tuple[int, Frame]]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    bad_lines: list[int] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)


def build_from_steps(
    paths: Sequence[Path], options: StepsOptions | None = None, split: SplitRequest | None = None
) -> Dataset:
    """Build a dataset of stacked frames, float32 [C + H, frames * D], calibration samples first.

    Raises:
        InvalidInputError: A log can't be read, fields are missing, frames differ in size, or there are too few steps.
    """
    options, split = options or StepsOptions(), split or SplitRequest()
    _check_options(options)
    logs = [_read_log(path, options) for path in sorted(paths, key=lambda path: path.name)]
    size = _frame_size(logs, options)
    runs = [(index, run) for index, log in enumerate(logs) for run in log.runs]
    duplicates = _find_duplicates([run for _, run in runs], options.frames)
    lengths = [len(run) for _, run in runs]
    calibration, heldout = draw_windows(lengths, options.frames, split, duplicates)
    drawn = [*calibration, *heldout]
    stacked = [_stack([frame for _, frame in _frames_of(runs[w.run][1], w, options.frames)], options) for w in drawn]
    traced = [[runs[w.run][0], *_line_span(runs[w.run][1], w, options.frames)] for w in drawn]
    candidates = sum(max(length - options.frames + 1, 0) for length in lengths)
    provenance = {
        "builder": "steps",
        "options": {**asdict(options), "frame_size": size},
        "draw": asdict(split),
        "candidates": candidates,
        "duplicates": len(duplicates),
        "files": [_describe_log(log, options.frames) for log in logs],
        "samples": traced,
        "samples_columns": ["file", "first line", "last line"],
    }
    document = {
        "synthetic": options.synthetic,
        "split": {"calibration": len(calibration), "heldout": len(heldout)},
        "provenance": provenance,
    }
    return Dataset({options.input_name: np.stack(stacked)}, document)


def _check_options(options: StepsOptions) -> None:
    if options.order not in ORDERS:
        raise InvalidInputError(
            f"Unknown frame order {options.order!r}.",
            reason="DATASET_INVALID",
            remedy=f"Use one of: {', '.join(ORDERS)}.",
        )
    if options.frames < 1 or options.gap_factor <= 1:
        raise InvalidInputError(
            "frames must be at least 1 and the gap factor above 1.",
            reason="DATASET_INVALID",
            remedy="Give the number of frames the policy was trained with, and a gap factor such as 1.5.",
        )


def _read_log(path: Path, options: StepsOptions) -> _Log:
    try:
        data = path.read_bytes()
    except OSError as error:
        remedy = "Name existing steps.jsonl files."
        raise unreadable(path, error, reason="STEPS_UNREADABLE", remedy=remedy) from error
    log = _Log(path.name, hashlib.sha256(data).hexdigest(), len(data))
    steps: list[tuple[int, float | None, Frame | None]] = []
    for number, raw in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        log.lines = number
        time_s, frame, reason = _read_step(raw, options, log)
        if reason:
            log.dropped[reason] += 1
            if reason != "NOT_IN_STATE" and len(log.bad_lines) < _LISTED_LINES:
                log.bad_lines.append(number)
        steps.append((number, time_s, frame))
    log.runs, log.period_s = _cut_runs(steps, options.gap_factor)
    return log


def _read_step(raw: str, options: StepsOptions, log: _Log) -> tuple[float | None, Frame | None, str]:
    """Return time, frame and, where there is no frame, the reason; the log notes what the step has instead."""
    try:
        step = json.loads(raw) if len(raw) <= MAX_LINE_CHARACTERS else None
    except (ValueError, RecursionError):
        step = None
    if not isinstance(step, dict):
        return None, None, "BROKEN_LINE"
    time_s = step.get(options.time_field)
    time_s = float(time_s) if isinstance(time_s, (int, float)) and math.isfinite(time_s) else None
    if options.state_field not in step or options.observation_field not in step:
        _note(log.fields, step)
        return time_s, None, "FIELD_MISSING"
    if step[options.state_field] not in options.states:
        _note(log.states, (step[options.state_field],))
        return time_s, None, "NOT_IN_STATE"
    try:
        with np.errstate(over="ignore"):
            frame = np.asarray(step[options.observation_field], dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return time_s, None, "BAD_FRAME"
    if frame.ndim != 1 or not frame.size or not np.isfinite(frame).all():
        return time_s, None, "BAD_FRAME"
    return time_s, frame, ""


def _note(seen: Counter[str], values: Iterable[Any]) -> None:
    """Count what was found in place of what was wanted; a log of nonsense does not fill the memory."""
    for value in itertools.islice(values, _LISTED_VALUES):
        text = str(value)[:_LISTED_CHARACTERS]
        if text in seen or len(seen) < _LISTED_VALUES:
            seen[text] += 1


def _cut_runs(
    steps: list[tuple[int, float | None, Frame | None]], gap_factor: float
) -> tuple[list[list[tuple[int, Frame]]], float]:
    times = [time_s for _, time_s, frame in steps if frame is not None]
    pauses = [b - a for a, b in itertools.pairwise(times) if a is not None and b is not None and b > a]
    period_s = statistics.median(pauses) if pauses else 0.0
    runs: list[list[tuple[int, Frame]]] = []
    previous: tuple[float | None, Frame | None] = (None, None)
    for number, time_s, frame in steps:
        if frame is not None:
            joined = previous[1] is not None and previous[1].size == frame.size
            if joined and time_s is not None and previous[0] is not None:
                joined = 0 < time_s - previous[0] <= gap_factor * period_s
            if not joined:
                runs.append([])
            runs[-1].append((number, frame))
        previous = (time_s, frame)
    return runs, period_s


def _frame_size(logs: list[_Log], options: StepsOptions) -> int:
    sizes = {frame.size for log in logs for run in log.runs for _, frame in run}
    if len(sizes) == 1 and options.terms and sum(options.terms) not in sizes:
        sizes = {*sizes, sum(options.terms)}
    if len(sizes) == 1:
        return sizes.pop()
    reasons = sum((log.dropped for log in logs), Counter[str]())
    message = (
        f"Frames have different sizes: {sorted(sizes)}."
        if sizes
        else f"No step is usable: {', '.join(f'{count} {reason}' for reason, count in reasons.items())}."
    )
    states = sum((log.states for log in logs), Counter[str]())
    fields = sum((log.fields for log in logs), Counter[str]())
    there = f" The logs have the states {_listed(states)}: choose by --state." if states and not sizes else ""
    there += f" Steps without these fields have {_listed(fields)}." if fields and not sizes else ""
    if set(reasons) == {"BROKEN_LINE"}:
        remedy = "Name logs of JSON lines: one object per step and line."
        raise InvalidInputError("No line is JSON.", reason="NO_STEPS", remedy=remedy)
    raise InvalidInputError(
        message,
        reason="FRAME_SIZES_DIFFER" if sizes else "NO_STEPS",
        remedy=f"Check the fields {options.state_field!r} (wanted: {', '.join(options.states)}) and "
        f"{options.observation_field!r}, and the term sizes.{there}",
    )


def _listed(counts: Counter[str]) -> str:
    return ", ".join(text for text, _ in counts.most_common(_LISTED_VALUES))


def _find_duplicates(runs: list[list[tuple[int, Frame]]], frames: int) -> frozenset[Window]:
    """Return the windows whose numbers equal those of an earlier window."""
    seen: set[bytes] = set()
    duplicates = set()
    for index, run in enumerate(runs):
        digests = [hashlib.sha256(frame.tobytes()).digest()[:16] for _, frame in run]
        for start in range(len(run) - frames + 1):
            key = b"".join(digests[start : start + frames])
            if key in seen:
                duplicates.add(Window(index, start))
            seen.add(key)
    return frozenset(duplicates)


def _frames_of(run: list[tuple[int, Frame]], window: Window, frames: int) -> list[tuple[int, Frame]]:
    return run[window.start : window.start + frames]


def _line_span(run: list[tuple[int, Frame]], window: Window, frames: int) -> tuple[int, int]:
    lines = [number for number, _ in _frames_of(run, window, frames)]
    return lines[0], lines[-1]


def _stack(frames: Iterable[Frame], options: StepsOptions) -> Frame:
    """Stack frames, each float32 [D], into one sample, float32 [frames * D]."""
    ordered = list(frames) if options.order == "oldest-first" else list(frames)[::-1]
    block = np.stack(ordered)
    if not options.terms:
        return block.reshape(-1)
    edges = np.cumsum(options.terms)[:-1]
    return np.concatenate([part.reshape(-1) for part in np.split(block, edges, axis=1)])


def _describe_log(log: _Log, frames: int) -> dict[str, Any]:
    dropped = Counter(log.dropped)
    dropped["RUN_TOO_SHORT"] = sum(len(run) for run in log.runs if len(run) < frames)
    return {
        "name": log.name,
        "sha256": log.sha256,
        "size_bytes": log.size_bytes,
        "lines": log.lines,
        "steps": sum(len(run) for run in log.runs),
        "runs": len(log.runs),
        "period_s": round(log.period_s, 6),
        "dropped": {reason: count for reason, count in sorted(dropped.items()) if count},
        "bad_lines": log.bad_lines,
    }
