"""Warnings of the tool reach the result when they name a node."""

from boardlift_compiler.parse_log import LogFacts, parse_log
from boardlift_compiler.report_warnings import MOST, named_warnings, printed_errors

SOFTMAX = "The input0 of Node(name:/attn/Softmax, type:Softmax) does not support data type: int16"
TAIL = "node name is y_HzDequantize, op type is Dequantize, no axis information"
BACK = "the quantization parameters of conv int16 is not supported, the input datatype of node:fc2 will be set back to"


def test_a_warning_that_names_a_node_is_a_note_about_it_once():
    facts = LogFacts(
        warnings=[SOFTMAX, SOFTMAX, TAIL, BACK, "Input node x's input_source not set, it will be set to ddr"]
    )
    found = named_warnings(facts, ())
    assert [(f.code, f.severity, f.subject) for f in found] == [
        ("TOOL_WARNING", "note", node) for node in ("/attn/Softmax", "y_HzDequantize", "fc2")
    ]
    assert SOFTMAX in found[0].message


def test_nodes_that_other_findings_are_about_are_left_out_and_there_is_an_end():
    facts = LogFacts(warnings=[SOFTMAX, BACK])
    assert [f.subject for f in named_warnings(facts, {"fc2"})] == ["/attn/Softmax"]
    many = LogFacts(warnings=[SOFTMAX.replace("attn", str(k)) for k in range(2 * MOST)])
    assert len(named_warnings(many, ())) == MOST


def test_on_a_recorded_log(testdata):
    facts = parse_log((testdata / "two_islands.log").read_text().splitlines())
    assert {f.subject for f in named_warnings(facts, ())} == {"sm"}


def test_what_the_tool_prints_as_an_error_is_said_once_and_not_without_end():
    found = printed_errors(LogFacts(errors=["bad thing", "bad thing", *(f"line {k}" for k in range(2 * MOST))]))
    assert len(found) == MOST and [f.message for f in found[:2]] == ["bad thing", "line 0"]
    assert {f.severity for f in found} == {"warning"}
