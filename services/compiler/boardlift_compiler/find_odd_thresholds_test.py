import math

import pytest

from boardlift_compiler.find_odd_thresholds import find_odd_thresholds
from boardlift_compiler.parse_log import LogFacts
from boardlift_compiler.parse_tables import NodeRow, OutputRow

ILLEGAL = "find illegal threshold in {}_HzCalibration, it"


@pytest.mark.parametrize(
    ("facts", "code", "severity", "subject"),
    [
        (LogFacts(nodes=[NodeRow("c", "BPU", 0, "X", math.nan, "", "int8")]), "COSINE_NAN", "error", "c"),
        (LogFacts(outputs=[OutputRow("y", math.nan, 0.0, 0.0, 0.0)]), "COSINE_NAN", "error", "y"),
        (LogFacts(warnings=[ILLEGAL.format("x")]), "THRESHOLD_ILLEGAL", "error", "x_HzCalibration"),
        (LogFacts(warnings=[ILLEGAL.format("inner")]), "THRESHOLD_ILLEGAL", "warning", "inner_HzCalibration"),
        (LogFacts(warnings=["got unexpected output threshold on conv c1! value: 4e30"]), "THRESHOLD_UNEXPECTED",
         "warning", "c1"),
    ],
)  # fmt: skip
def test_what_the_tool_finds_odd_is_told(facts, code, severity, subject):
    (found,) = find_odd_thresholds(facts, {"x"})
    assert (found.code, found.severity, found.subject) == (code, severity, subject)


def test_what_is_fine_is_not():
    rows = [NodeRow("c", "BPU", 0, "X", 0.99, "1.0", "int8"), NodeRow("d", "CPU", -1, "Y", None, "", "float")]
    assert find_odd_thresholds(LogFacts(nodes=rows, warnings=["the input datatype of node c"]), {"x"}) == []
