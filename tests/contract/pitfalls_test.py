"""The 30 problems that users of the vendor's toolchain report most, and what of ours says each by a stable code.

The codes of failures, findings and diagnoses live in different packages; each of them is proven by tests of its own.
This keeps the list whole: a code that is renamed or dropped leaves a known problem unexplained.
"""

import re
from pathlib import Path

import pytest
from boardlift_compiler.failures import FAILURE_KINDS

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
    27: ("diagnosis", "user-code"),
    28: ("board finding", "NV12_SHAPE_WRONG"),
    29: ("board finding", "RUNTIME_MISSING"),
    30: ("diagnosis", "user-code"),
}
SOURCES = {
    "finding": "services/compiler/boardlift_compiler",
    "board finding": "services/board_agent/boardlift_board_agent",
    "diagnosis": "services/board_agent/boardlift_board_agent/diagnosis",
}


def codes_in(folder: str) -> set[str]:
    texts = [p.read_text() for p in (ROOT / folder).rglob("*.py") if not p.name.endswith("_test.py")]
    return {code for text in texts for code in re.findall(r'"([A-Za-z0-9_-]+)"', text)}


@pytest.mark.parametrize("number", PITFALLS)
def test_a_known_problem_has_a_code_that_says_it(number):
    where, code = PITFALLS[number]
    assert code in (FAILURE_KINDS if where == "failure" else codes_in(SOURCES[where]))


@pytest.mark.shared
def test_the_list_is_that_of_the_collected_reports():
    text = (ROOT.parent / "shared/toolchain/PITFALLS.md").read_text()
    assert {int(n) for n in re.findall(r"^(\d+)\. \*\*", text, re.M)} == set(PITFALLS)
