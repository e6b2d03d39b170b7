"""What `hrt_model_exec` prints -> typed facts. Pure; proven on real logs of X5 releases 1.23 to OS 3.5 and of S100.

Lines that are not known are passed over, contradictions are errors: a report without its figures is never a result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from boardlift.errors import InternalError

from boardlift_board_agent.tensor_spec import TensorSpec

_BPU = re.compile(r"\[BPU_PLAT\]BPU Platform Version\(([^)]+)\)!(?:\s*soc info\(([^)]+)\))?")
_HBRT = re.compile(r"\[HBRT\] set log level as \d+\. version = (\S+)")
_DNN = re.compile(r"\[DNN\] Runtime version = (\S+?)_\(")
_DNN_S = re.compile(r"\[DNN\]: (\S+?)_\((\S+) HBRT\)")
_UCP = re.compile(r"\[UCP\]: UCP version = (\S+)")
_BUILDER = re.compile(r"The model builder version = (\S+)")
_LOAD = re.compile(r"Load model to DDR cost ([\d.]+)ms")
_SKEW = re.compile(r"hbrt library version (\S+) and the model build version (\S+) detected")
_CODE = re.compile(r"error code:\s*(-\d+)")
_ENGINE = re.compile(r"^\[SIMULATED\] engine (\w+):", re.MULTILINE)
_ERROR_LINE = re.compile(r"^\[E\]|error code:|\bfailed\b", re.IGNORECASE)
_BLOCK = re.compile(r"^(input|output)\[(\d+)\]:\s*$")
_WINDOW = re.compile(
    r"Frame count: (\d+),\s+Thread Average: ([\d.]+) ms,\s+thread max latency: ([\d.]+) ms,\s+"
    r"thread min latency: ([\d.]+) ms,\s+FPS: ([\d.]+)"
)
_TOTALS = {
    "threads": re.compile(r"Thread number is: (\d+)"),
    "frames": re.compile(r"Frame count\s+is: (\d+)"),
    "run_ms": re.compile(r"Program run time: ([\d.]+) ms"),
    "total_ms": re.compile(r"Frame totally latency is: ([\d.]+) ms"),
    "mean_ms": re.compile(r"Average\s+latency\s+is: ([\d.]+) ms"),
    "fps": re.compile(r"Frame\s+rate\s+is: ([\d.]+) FPS"),
}
_INFER = re.compile(r"infer time:?\s*([\d.]+)\s*ms", re.IGNORECASE)
_COMMON_STOPS = ("---", "#", "hrt_model_exec")


@dataclass(frozen=True)
class Header:
    """What any sub-command prints before its own result."""

    simulated: bool
    """True when the tool says it is a stand-in."""
    bpu_platform: str
    """BPU platform version; empty when not printed."""
    soc: str
    """System on chip; older releases do not print it."""
    hbrt: str
    """BPU runtime version."""
    dnn: str
    """libdnn version (S series: its DNN version)."""
    builder: str
    """Version of the mapper that built the model."""
    load_ms: float | None
    """Time to load the model."""
    skew: tuple[str, str] | None
    """(runtime version, version the model was built for) when the tool warns of a difference."""
    errors: tuple[str, ...]
    """Error lines."""
    error_code: int | None
    """The runtime's first error code."""
    engine: str = ""
    """What a stand-in computes outputs with, `compiled` or `runtime`; empty on a board, and where nothing is inferred.
    """


@dataclass(frozen=True)
class PerfWindow:
    """One progress line of perf: figures over its frames."""

    frames: int
    mean_ms: float
    max_ms: float
    min_ms: float
    fps: float


@dataclass(frozen=True)
class PerfReport:
    """The result of perf."""

    threads: int
    frames: int
    run_ms: float
    """Wall time of the whole run."""
    total_ms: float
    """Sum of all frames' latencies over all threads."""
    mean_ms: float
    fps: float
    windows: tuple[PerfWindow, ...]

    @property
    def max_ms(self) -> float | None:
        """Slowest frame, when the tool printed windows."""
        return max((w.max_ms for w in self.windows), default=None)

    @property
    def min_ms(self) -> float | None:
        """Fastest frame, when the tool printed windows."""
        return min((w.min_ms for w in self.windows), default=None)


def parse_header(text: str) -> Header:
    """Versions, load time, warnings and errors.

    Args:
        text: standard output and error of one run, in any order.
    """
    bpu, dnn, skew, load, code = (p.search(text) for p in (_BPU, _DNN, _SKEW, _LOAD, _CODE))
    newer = _DNN_S.search(text)
    hbrt = _first(_HBRT, text) or (newer[2] if newer else "")
    lines = [line.strip() for line in text.splitlines() if _ERROR_LINE.search(line)]
    return Header(
        simulated="SIMULATED" in text,
        bpu_platform=bpu[1] if bpu else "",
        soc=(bpu[2] or "") if bpu else "",
        hbrt=hbrt,
        dnn=dnn[1] if dnn else newer[1] if newer else _first(_UCP, text),
        builder=_first(_BUILDER, text),
        load_ms=float(load[1]) if load else None,
        skew=(skew[1], skew[2]) if skew else None,
        errors=tuple(line[:500] for line in lines[:20]),
        error_code=int(code[1]) if code else None,
        engine=_first(_ENGINE, text),
    )


def parse_model_info(text: str) -> tuple[TensorSpec, ...]:
    """Tensors of the (first) model, inputs before outputs, in the tool's order.

    Raises:
        InternalError: MODEL_INFO_UNREADABLE when a block lacks a needed line or there is no output at all.
    """
    blocks: list[tuple[str, dict[str, str]]] = []
    current: dict[str, str] | None = None
    seen: set[tuple[str, str]] = set()
    for line in text.splitlines():
        start = _BLOCK.match(line)
        if start:
            if (start[1], start[2]) in seen:
                break  # the next model of the file
            seen.add((start[1], start[2]))
            current = {}
            blocks.append((start[1], current))
        elif current is not None:
            key, separator, value = line.partition(":")
            if separator and not line.startswith(_COMMON_STOPS):
                current[key.strip()] = value.strip()
            elif line.startswith(_COMMON_STOPS):
                current = None
    tensors = tuple(_tensor(kind, fields) for kind, fields in blocks)
    if not any(not t.input for t in tensors):
        raise InternalError(
            "The tool's model_info names no output.",
            reason="MODEL_INFO_UNREADABLE",
            remedy="Compile the model again: the file names nothing that could be run.",
        )
    return tensors


def _tensor(kind: str, fields: dict[str, str]) -> TensorSpec:
    try:
        quantization = fields.get("quanti type", "NONE")
        scale = _floats(fields.get("scale data", ""))
        return TensorSpec(
            name=fields["name"],
            input=kind == "input",
            valid=_numbers(fields["valid shape"]),
            type=fields["tensor type"],
            size_bytes=int(fields["aligned byte size"]),
            aligned=_numbers(fields.get("aligned shape", "")),
            stride=_numbers(fields.get("stride", "")),
            source=fields.get("input source", ""),
            layout=fields.get("tensor layout", ""),
            quantization=quantization,
            scale=scale if quantization == "SCALE" else (),
            axis=int(fields.get("quantizeAxis", "0") or 0),
        )
    except (KeyError, ValueError) as error:
        raise InternalError(
            f"The tool's model_info can't be read near {kind} {fields.get('name', '?')}: {error}.",
            reason="MODEL_INFO_UNREADABLE",
            remedy="Send the log with a report; the tool's release may be new.",
        ) from error


def parse_perf(text: str) -> PerfReport:
    """The figures of perf.

    Raises:
        InternalError: PERF_UNREADABLE when the final block is missing (the run did not end well).
    """
    found = {name: pattern.search(text) for name, pattern in _TOTALS.items()}
    missing = sorted(name for name, match in found.items() if match is None)
    if missing:
        raise InternalError(
            f"The tool's perf report lacks {', '.join(missing)}.",
            reason="PERF_UNREADABLE",
            remedy="The run broke off; look at the log.",
            metadata={"missing": ",".join(missing)},
        )
    values = {name: float(match[1]) for name, match in found.items() if match}
    windows = tuple(PerfWindow(int(m[0]), *(float(v) for v in m[1:])) for m in _WINDOW.findall(text))
    return PerfReport(
        threads=int(values["threads"]),
        frames=int(values["frames"]),
        run_ms=values["run_ms"],
        total_ms=values["total_ms"],
        mean_ms=values["mean_ms"],
        fps=values["fps"],
        windows=windows,
    )


def parse_infer_ms(text: str) -> tuple[float, ...]:
    """Times of the frames that infer prints, in milliseconds; empty when the release prints none."""
    return tuple(float(v) for v in _INFER.findall(text))


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip("() ").split(",") if part.strip())


def _floats(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(",") if part.strip())
