"""The 30 problems that users of the vendor's toolchain report most, and what of ours says each by a stable code.

The codes of failures, findings and diagnoses live in different packages; each is provoked by a test of its package,
which this asks for. A code that is renamed or dropped, or that nothing says any more, leaves a problem unexplained.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PITFALLS = {
    1: ("failure", "OPSET_TOO_HIGH"),
    2: ("failure", "IR_VERSION_TOO_HIGH"),
    3: ("failure", "DYNAMIC_SHAPE"),
    4: ("diagnosis", "output-layout-misread"),
    5: ("finding", "OUTPUT_CHANNELS_LOST"),
    6: ("diagnosis", "output-size-wrong"),
    7: ("failure", "CRASH"),
    8: ("failure", "CPU_OPERATOR_UNSUPPORTED"),
    9: ("failure", "CALIBRATION_SAMPLE_SIZE"),
    10: ("finding", "CALIBRATION_LOOKS_NORMALISED"),
    11: ("diagnosis", "input-reversed-channels"),
    12: ("finding", "CALIBRATION_FEW_SAMPLES"),
    13: ("finding", "CALIBRATION_SUFFIX_CONTRADICTS"),
    14: ("finding", "CALIBRATION_BATCH_FALLBACK"),
    15: ("diagnosis", "precision-too-low"),
    16: ("finding", "NODE_WILL_RUN_ON_CPU"),
    17: ("failure", "NODE_INFO_SYNTAX"),
    18: ("finding", "NODE_ON_CPU"),
    19: ("board finding", "SLOWER_THAN_ESTIMATED"),
    20: ("failure", "CPU_UNSUPPORTED"),
    21: ("failure", "TIMEOUT"),
    22: ("finding", "LEVEL_DEFAULT"),
    23: ("failure", "CORE_NUM_UNSUPPORTED"),
    24: ("failure", "MARCH_MISMATCH"),
    25: ("diagnosis", "version-skew"),
    26: ("diagnosis", "output-not-dequantised"),
    27: ("diagnosis", "user-code-unexplained"),
    28: ("board finding", "NV12_SHAPE_WRONG"),
    29: ("board finding", "RUNTIME_MISSING"),
    30: ("figure", "board_p99_ms"),  # what the model alone takes on the board; the rest is the application's
}
PACKAGES = {
    "failure": "services/compiler/boardlift_compiler",
    "finding": "services/compiler/boardlift_compiler",
    "board finding": "services/board_agent/boardlift_board_agent",
    "diagnosis": "services/board_agent/boardlift_board_agent/diagnosis",
    "figure": "services/orchestrator/boardlift_orchestrator",
}


def codes_in(folder: str, tests: bool) -> set[str]:
    """Texts that the code of a package writes out, or that its tests expect; documentation does not count."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        if path.name.endswith("_test.py") == tests:
            tree = ast.parse(path.read_text())
            told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            found |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in told}
    return {value for value in found if isinstance(value, str)}


@pytest.mark.parametrize("number", PITFALLS)
def test_a_known_problem_has_a_code_that_says_it_and_a_test_that_provokes_it(number):
    where, code = PITFALLS[number]
    assert code in codes_in(PACKAGES[where], tests=False), "nothing says it"
    assert code in codes_in(PACKAGES[where], tests=True), "no test of its package provokes it"


@pytest.mark.shared
def test_the_list_is_that_of_the_collected_reports():
    text = (ROOT.parent / "shared/toolchain/PITFALLS.md").read_text()
    assert {int(n) for n in re.findall(r"^(\d+)\. \*\*", text, re.M)} == set(PITFALLS)
