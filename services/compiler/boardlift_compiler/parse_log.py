"""Parse the output of ``hb_mapper checker`` and ``makertbin`` into facts: pure, line by line, never fails on a line.

What is missing is missing on purpose: :meth:`LogFacts.require_tables` turns a finished run without its tables into an
error, so that an unknown tool version cannot pass as "no nodes on the CPU".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from boardlift_compiler.parse_tables import NodeRow, OutputRow, TableReader
from boardlift_compiler.split_log import LogLine, split_line

STAGES = {"prepare": "prepare", "optimize": "optimise", "calibrate": "calibrate", "quantize": "quantise",
          "compile": "compile", "parse": "prepare"}  # fmt: skip
STAGE = re.compile(r"^(Start|End) to (prepare|optimize|calibrate|quantize|compile|parse) the (?:onnx )?model")
VERSION = re.compile(r"^(hb_mapper|hbdk|horizon_nn|hbdk runtime) version\s*:?\s*(\S+)$")
SAMPLES = re.compile(r"^There are (\d+) samples in the (?:calibration )?data set")
SAMPLES_LOADED = re.compile(r"^num of calibration data: (\d+)")
METHOD = re.compile(r"^Select (\S+) method")
RUN_METHOD = re.compile(r"^Run calibration model with (.+?) method")
SUBMODEL = re.compile(r"^Compile submodel: (\S.*)$")
CONSUMED = re.compile(r"^consumed time ([\d.eE+-]+)")
ESTIMATE = re.compile(r"FPS=([\d.]+), latency = ([\d.]+) us, DDR = (\d+) bytes\s+\(see (.+?)\)")
MARCH = re.compile(r"^BPU march\s*: (\S+)")
SET_BACK = re.compile(r"the input datatype of node:?\s*(\S+?),? will be set back to (int8|int16)", re.I)
KEY_VALUE = re.compile(r"^([\w&/ .-]+?)\s*:\s(.*)$")
OPTIONS = re.compile(r"^hbdk_pass_through_params\s*: (.*)$")
INPUT_INFO = re.compile(r"^-+input info : (.+?) (end )?-+$")
FIRST_MD5 = re.compile(r"^([0-9a-f]{32})  \S")
EPHEMERAL = re.compile(r"(in progress:|it/s\]|s/it\])")


class ParseError(ValueError):
    """The log says the run succeeded but a table the result is made of is missing."""


@dataclass(frozen=True)
class SubgraphLine:
    """What the compiler printed for one BPU subgraph; all numbers are static estimates."""

    name: str
    """Subgraph name."""
    fps: float
    """Frames per second."""
    latency_us: float
    """Latency in microseconds."""
    ddr_bytes: int
    """DDR traffic in bytes per frame."""
    compile_seconds: float | None
    """Time the compiler took."""


@dataclass
class LogFacts:
    """Everything read from one log."""

    versions: dict[str, str] = field(default_factory=dict)
    """``hb_mapper``, ``hbdk``, ``horizon_nn``, ``hbdk runtime`` -> version."""
    march: str = ""
    """Architecture printed in the summary; empty when not reached."""
    samples: int = 0
    """Calibration samples the tool says it has."""
    files_read: int = 0
    """`Read raw file` lines (log file only)."""
    chosen_method: str = ""
    """Winner of the method search, or the only method."""
    batch_fallback: bool = False
    """True when the calibrator fell back to batch 1."""
    step_seconds: dict[str, float] = field(default_factory=dict)
    """Seconds per stage: prepare, optimise, calibrate, quantise, compile, total."""
    unfinished_stage: str = ""
    """Stage that started and did not end."""
    nodes: list[NodeRow] = field(default_factory=list)
    """Node table."""
    outputs: list[OutputRow] = field(default_factory=list)
    """Output table."""
    has_node_table: bool = False
    """True when a node table's header was seen."""
    has_output_table: bool = False
    """True when an output table's header was seen."""
    subgraphs: list[SubgraphLine] = field(default_factory=list)
    """Estimate per BPU subgraph."""
    warnings: list[str] = field(default_factory=list)
    """Warning records."""
    errors: list[str] = field(default_factory=list)
    """Error records, continuation lines joined."""
    set_back: dict[str, str] = field(default_factory=dict)
    """Node -> type it was silently set back to."""
    inputs_echo: dict[str, dict[str, str]] = field(default_factory=dict)
    """Per input what the tool says it used: ``cal_data_type``, ``input_shape``, ``input_type_rt`` ..."""
    compiler_options: str = ""
    """Options the tool says it gives its compiler: ``--O3 --debug --core-num 1 --fast``."""
    first_md5: list[str] = field(default_factory=list)
    """Per input the MD5 of the first calibration file, as the tool computed it."""
    converted: bool = False
    """The closing line of makertbin was seen."""
    checked: bool = False
    """The closing line of checker was seen."""
    tail: list[str] = field(default_factory=list)
    """Last lines without progress bars, at most 40."""

    def require_tables(self, outputs: bool = True) -> None:
        """Fail when a finished run lacks its tables.

        Args:
            outputs: False for calibration method skip, which prints no output rows.

        Raises:
            ParseError: naming the missing table and the tool version.
        """
        version = self.versions.get("hb_mapper", "unknown")
        if not (self.converted or self.checked):
            return
        if not self.nodes:
            raise ParseError(f"the run finished but its log holds no node table (hb_mapper {version})")
        if self.converted and outputs and not self.outputs:
            raise ParseError(f"the run finished but its log holds no output table (hb_mapper {version})")
        bpu = {n.subgraph for n in self.nodes if n.device == "BPU"}
        if len(self.subgraphs) < len(bpu):
            raise ParseError(f"{len(bpu)} BPU subgraphs but {len(self.subgraphs)} estimates (hb_mapper {version})")


class LogParser:
    """Builds :class:`LogFacts` from a stream of raw lines."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self.facts = LogFacts()
        self._tables = TableReader()
        self._level = ""
        self._began: dict[str, datetime] = {}
        self._first: datetime | None = None
        self._submodel = ""
        self._consumed: float | None = None
        self._input = ""

    def feed(self, raw: str) -> list[LogLine]:
        """Take one raw line; return its cleaned lines (for progress and live logs)."""
        lines = split_line(raw)
        for line in lines:
            self._take(line)
        return lines

    def _take(self, line: LogLine) -> None:
        facts = self.facts
        if not EPHEMERAL.search(line.text):
            facts.tail.append(line.text[:400])
            del facts.tail[:-40]
        if line.starts_record:
            self._level = line.level
            self._tables.feed(line.text, True)
            self._take_record(line)
        elif not self._tables.feed(line.text, False):
            self._take_continuation(line.text)
        facts.nodes, facts.outputs = self._tables.nodes, self._tables.outputs
        facts.has_node_table = self._tables.node_tables > 0
        facts.has_output_table = self._tables.output_tables > 0
        self._take_anywhere(line.text)

    def _take_record(self, line: LogLine) -> None:
        facts, text, time = self.facts, line.text, line.time
        if time is not None:
            self._first = self._first or time
            facts.step_seconds["total"] = round((time - self._first).total_seconds(), 3)
            self._take_stage(text, time)
        if line.level == "WARNING":
            facts.warnings.append(text)
        elif (
            line.level in ("ERROR", "CRITICAL")
            or "ERROR-OCCUR-DURING" in text
            or text.startswith("exception in command")
        ):
            facts.errors.append(text)
        if match := INPUT_INFO.match(text):
            self._input = "" if match[2] else match[1]
            if self._input:
                facts.inputs_echo.setdefault(self._input, {})
        elif self._input and (pair := KEY_VALUE.match(text)):
            facts.inputs_echo[self._input][pair[1].strip()] = pair[2].strip()
        if match := OPTIONS.match(text):
            facts.compiler_options = match[1].strip()
        facts.converted |= text.startswith("Convert to runtime bin file successfully")
        facts.checked |= text.startswith("End model checking")
        facts.files_read += text.startswith("Read raw file")

    def _take_stage(self, text: str, time: datetime) -> None:
        match = STAGE.match(text)
        if match is None:
            return
        stage = STAGES[match[2]]
        if match[1] == "Start":
            self._began[stage] = time
            self.facts.unfinished_stage = stage
        elif stage in self._began:
            self.facts.step_seconds[stage] = round((time - self._began[stage]).total_seconds(), 3)
            self.facts.unfinished_stage = ""

    def _take_continuation(self, text: str) -> None:
        facts = self.facts
        if self._level in ("ERROR", "CRITICAL") and facts.errors and not EPHEMERAL.search(text):
            facts.errors[-1] = (facts.errors[-1] + "\n" + text)[:4000]
        elif text.startswith(("Error: ", "ERROR:", "ERROR ")):
            facts.errors.append(text)
        elif self._level == "WARNING" and facts.warnings and SET_BACK.search(text):
            facts.warnings[-1] = (facts.warnings[-1] + "\n" + text)[:2000]

    def _take_anywhere(self, text: str) -> None:
        facts = self.facts
        if match := VERSION.match(text):
            facts.versions[match[1]] = match[2]
        elif match := SAMPLES.match(text) or SAMPLES_LOADED.match(text):
            facts.samples = max(facts.samples, int(match[1]))  # method mix counts again, per trial
        elif match := METHOD.match(text):
            facts.chosen_method = match[1]
        elif match := RUN_METHOD.match(text):
            facts.chosen_method = facts.chosen_method or ("" if "search" in match[1] else match[1])
        elif text.startswith("Reset batch_size=1"):
            facts.batch_fallback = True
        elif match := SUBMODEL.match(text):
            self._submodel, self._consumed = match[1], None
        elif match := CONSUMED.match(text):
            self._consumed = float(match[1])
        elif match := ESTIMATE.search(text):
            name = match[4].rsplit("/", 1)[-1].removesuffix(".html") or self._submodel
            facts.subgraphs.append(SubgraphLine(name, float(match[1]), float(match[2]), int(match[3]), self._consumed))
        elif match := MARCH.match(text):
            facts.march = match[1]
        elif match := FIRST_MD5.match(text):
            facts.first_md5.append(match[1])
        for match in SET_BACK.finditer(text):
            facts.set_back[match[1]] = match[2]


def parse_log(lines: Iterable[str]) -> LogFacts:
    """Parse a whole log; the console text of a run or the log file it left."""
    parser = LogParser()
    for line in lines:
        parser.feed(line)
    return parser.facts
