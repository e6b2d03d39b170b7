"""Reports: what is read, and that nothing unreadable becomes a zero."""

import json

import pytest

from boardlift_compiler.parse_reports import ReportError, parse_quant_info, parse_subgraph_report

HEADER = ["layer", "ops", "compute cost", "r/w", "computing cost (no DDR)", "load/store cost", "active period"]
SUMMARY = {
    "model name": "policy_subgraph_0",
    "BPU march": "B25E",
    "FPS": 7337.27,
    "latency (us)": 136.3,
    "latency (ms)": 0.1363,
    "DDR bytes per frame": 984954,
    "BPU OPs per frame (effective)": 2048,
    "layer details": [
        HEADER,
        ["Conv_0", "1,024 (50%)", "", "", "57 us (42%)", "<1 us", "0 ~ 57 us (57 us)"],
        ["Relu_1", "0", "", "", "1.5 ms", "0", ""],
    ],
}


def report(**changes: object) -> str:
    return json.dumps({"summary": {k: v for k, v in {**SUMMARY, **changes}.items() if v is not None}})


def test_a_report_is_read_with_its_layers():
    found = parse_subgraph_report(report())
    assert (found.name, found.march, found.latency_us, found.ddr_bytes) == ("policy_subgraph_0", "B25E", 136.3, 984954)
    rows = [(row.layer, row.operations, row.compute_us, row.transfer_us) for row in found.layers]
    assert rows == [("Conv_0", 1024, 57.0, 1.0), ("Relu_1", 0, 1500.0, 0.0)]
    assert parse_subgraph_report(report(**{"latency (us)": None})).latency_us == pytest.approx(136.3)


@pytest.mark.parametrize(
    "changes",
    [
        {"latency (us)": None, "latency (ms)": None},
        {"FPS": None},
        {"DDR bytes per frame": "many"},
        {"layer details": [HEADER, ["Conv_0", "1", "", "", "57 ticks", "0", ""]]},
        {"layer details": [HEADER, ["Conv_0", "1"]]},
    ],
)
def test_what_cannot_be_read_is_an_error_and_no_zero(changes):
    with pytest.raises(ReportError):
        parse_subgraph_report(report(**changes))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"summary": 3}', "null"])
def test_another_file_is_an_error(text):
    with pytest.raises(ReportError):
        parse_subgraph_report(text)


def test_quant_info_gives_thresholds_per_input_and_no_cosine_where_there_is_none():
    entry = {"type": "Conv", "inputs": ["x"], "outputs": ["y"], "thresholds": [[1.5], []], "cosine_similarity": "0.99"}
    found = parse_quant_info(json.dumps({"conv": entry, "relu": {"cosine_similarity": "--"}}))
    assert (found["conv"].thresholds, found["conv"].cosine, found["relu"].cosine) == (((1.5,), ()), 0.99, None)
    for text in ("[]", '{"conv": 3}', "x"):
        with pytest.raises(ReportError):
            parse_quant_info(text)
