"""Parse the node and output tables of checker and makertbin, row by row; pure.

The columns are found from the header, so the layouts of 1.16 (four columns), 1.23 (`In/Out DataType`) and 1.24
(`DataType`) are all read.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

NODE_HEADER = re.compile(r"^Node\s+ON\s+Subgraph\s+Type\b")
OUTPUT_HEADER = re.compile(r"^(?:Output|Node)\s+Cosine Similarity\s+L1 Distance\s+L2 Distance\s+Chebyshev Distance\s*$")
BARE_OUTPUT_HEADER = re.compile(r"^Output\s*$")
RULE = re.compile(r"^(=+|-+)$")
NODE_START = re.compile(r"^(?P<node>.+?)\s{2,}(?P<on>BPU|CPU|JIT)\s{2,}(?P<rest>\S.*)$")
SUBGRAPH = re.compile(r"id\((\d+)\)")


@dataclass(frozen=True)
class NodeRow:
    """One row of the node table."""

    node: str
    """Name as printed; longer than 50 characters becomes ``...`` and its last 47."""
    device: str
    """``BPU`` or ``CPU``."""
    subgraph: int
    """BPU subgraph number; -1 on the CPU."""
    type: str
    """Vendor's node type."""
    cosine: float | None
    """Cosine as printed (may be slightly above 1, may be NaN); None when not printed."""
    threshold: str
    """Threshold as printed; empty when none."""
    dtype: str
    """``int8``, ``int16``, ``float``; old tools print ``int8/int32``; empty when not printed."""


@dataclass(frozen=True)
class OutputRow:
    """One row of the output table: the vendor's fake-quantised run against the vendor's float run, first sample."""

    output: str
    """Output name."""
    cosine: float
    """Cosine similarity."""
    l1: float
    """Mean absolute difference."""
    l2: float
    """Euclidean norm of the difference divided by the number of elements."""
    chebyshev: float
    """Largest absolute difference."""


def parse_node_row(columns: list[str], line: str) -> NodeRow | None:
    """Return the row, or None when the line is no row of a node table with these header columns."""
    match = NODE_START.match(line.rstrip())
    if match is None:
        return None
    cells = re.split(r"\s{2,}", match["rest"].strip())
    values = dict(zip([c.lower() for c in columns[2:]], cells, strict=False))
    subgraph = SUBGRAPH.fullmatch(values.get("subgraph", ""))
    if subgraph is None and values.get("subgraph") != "--":
        return None
    dtype = values.get("datatype", values.get("in/out datatype", ""))
    threshold = values.get("threshold", "")
    return NodeRow(
        match["node"],
        match["on"],
        int(subgraph[1]) if subgraph else -1,
        values.get("type", ""),
        _number(values.get("cosine similarity", "--")),
        "" if threshold == "--" else threshold,
        dtype,
    )


def parse_output_row(line: str) -> OutputRow | None:
    """Return the row, or None when the line is no row of an output table."""
    cells = line.rstrip().rsplit(None, 4)
    if len(cells) != 5:
        return None
    numbers = [_number(c) for c in cells[1:]]
    if any(n is None for n in numbers):
        return None
    cosine, l1, l2, chebyshev = (math.nan if n is None else n for n in numbers)
    return OutputRow(cells[0].strip(), cosine, l1, l2, chebyshev)


def header_columns(line: str) -> list[str]:
    """Split a header line into its column names."""
    return re.split(r"\s{2,}", line.strip())


def _number(text: str) -> float | None:
    if text == "--":
        return None
    try:
        return float(text)
    except ValueError:
        return None


class TableReader:
    """Follows tables through a stream of lines.

    Feed every line; rows are collected in ``nodes`` and ``outputs``. A table ends at the first line that is no row.
    """

    def __init__(self) -> None:
        """Start outside any table."""
        self.nodes: list[NodeRow] = []
        self.outputs: list[OutputRow] = []
        self.node_tables = 0
        self.output_tables = 0
        self._columns: list[str] = []
        self._inside = ""

    def feed(self, line: str, starts_record: bool) -> bool:
        """Take one line; return True when it belongs to a table."""
        if starts_record:
            self._inside = ""
            return False
        if NODE_HEADER.match(line):
            self._inside, self._columns = "nodes", header_columns(line)
            self.node_tables += 1
            self.nodes = []
            return True
        if OUTPUT_HEADER.match(line) or BARE_OUTPUT_HEADER.match(line):
            self._inside = "outputs"
            self.output_tables += 1
            self.outputs = []
            return True
        if not self._inside or RULE.match(line.strip()):
            return bool(RULE.match(line.strip()))
        return self._take_row(line)

    def _take_row(self, line: str) -> bool:
        if self._inside == "nodes":
            row = parse_node_row(self._columns, line)
            if row is not None:
                self.nodes.append(row)
                return True
        else:
            output = parse_output_row(line)
            if output is not None:
                self.outputs.append(output)
                return True
        self._inside = ""
        return False
