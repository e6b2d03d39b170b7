from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boardlift_compiler.parse_log import LogParser, ParseError, parse_log
from boardlift_compiler.parse_tables import TableReader

MAKERTBIN_124 = {
    "02_": (210, 1, 2, 100, "max-percentile:percentile=0.99995", True),
    "03_": (243, 6, 1, 201, "max-percentile:percentile=0.99995", True),
    "04_": (243, 6, 1, 50, "max-percentile:percentile=0.99995", True),
    "05_": (119, 1, 1, 31, "max", True),
    "06_": (401, 6, 1, 50, "max-percentile:percentile=0.99995,per_channel", True),
    "07_": (618, 6, 1, 50, "kl:num_bin=1024,max_num_bin=16384,per_channel", True),
    "08_": (225, 6, 1, 50, "max-percentile:percentile=0.99995", True),
    "09_": (190, 9, 1, 51, "max-percentile:percentile=0.99995", False),
    "10_": (197, 10, 1, 50, "max-percentile:percentile=0.99995", False),
    "11_": (422, 10, 1, 50, "max-percentile:percentile=0.99995", False),
    "26_": (243, 6, 1, 50, "max-percentile:percentile=0.99995", True),
    "real_makertbin_policy_int16": (7, 1, 1, 64, "max", True),
    "real_makertbin_policy_int8_default": (7, 1, 1, 64, "max-percentile:percentile=0.99995", True),
    "real_makertbin_2in_2out": (5, 2, 2, 4, "max", False),
    "real_makertbin_resnet": (24, 1, 1, 10, "max", False),
    "real_makertbin_yolo_nv12": (133, 6, 1, 4, "max", False),
}


def read(path):
    return parse_log(path.read_text(errors="replace").splitlines())


@pytest.mark.shared
@pytest.mark.parametrize("prefix", sorted(MAKERTBIN_124))
def test_every_finished_makertbin_log_of_other_people(shared_logs, prefix):
    (path,) = shared_logs.glob(f"{prefix}*")
    facts = read(path)
    nodes, outputs, subgraphs, samples, method, fallback = MAKERTBIN_124[prefix]
    assert (len(facts.nodes), len(facts.outputs), len(facts.subgraphs)) == (nodes, outputs, subgraphs)
    assert (facts.samples, facts.chosen_method, facts.batch_fallback) == (samples, method, fallback)
    assert facts.converted
    facts.require_tables()


@pytest.mark.shared
def test_no_log_at_all_breaks_the_parser_and_every_table_row_is_read(shared_logs):
    for path in sorted(shared_logs.iterdir()):
        text = path.read_text(errors="replace")
        facts = parse_log(text.splitlines())
        rows = sum("BPU  id(" in line or "  CPU  --" in line for line in text.splitlines())
        if path.name[:2].isdigit() and int(path.name[:2]) not in (32, 38, 39):
            assert len(facts.nodes) == rows, path.name


@pytest.mark.shared
@pytest.mark.parametrize(("prefix", "rows", "dtypes"), [("21_", 31, "int8/int8"), ("22_", 47, "int8/int8")])
def test_tables_of_1_23(shared_logs, prefix, rows, dtypes):
    (path,) = shared_logs.glob(f"{prefix}*")
    facts = read(path)
    assert len(facts.nodes) == rows
    assert Counter(n.dtype for n in facts.nodes).most_common(1)[0][0] == dtypes
    assert facts.nodes[-1].device == "CPU"


@pytest.mark.parametrize("name", ["policy_int8.log", "policy_int16.log", "two_islands.log"])
def test_our_own_recordings(testdata, name):
    facts = read(testdata / name)
    facts.require_tables()
    assert facts.versions["hb_mapper"] == "1.24.3"
    assert facts.versions["hbdk"] == "3.49.15"
    assert facts.march == "bayes-e"
    assert facts.converted
    assert not facts.errors
    assert set(facts.step_seconds) == {"prepare", "optimise", "calibrate", "quantise", "compile", "total"}
    assert facts.inputs_echo
    assert facts.first_md5


def test_a_node_that_is_set_back_to_int8_is_named(testdata):
    facts = read(testdata / "policy_int16.log")
    assert facts.set_back == {"fc2": "int8"}
    assert {n.node: n.dtype for n in facts.nodes}["fc2"] == "int8"


def test_a_cpu_island_makes_two_subgraphs(testdata):
    facts = read(testdata / "two_islands.log")
    assert [s.name for s in facts.subgraphs] == ["main_graph_subgraph_0", "main_graph_subgraph_1"]
    assert [n.node for n in facts.nodes if n.device == "CPU"] == ["sm"]
    assert {o.output for o in facts.outputs} == {"y1", "y2"}


def test_checker_prints_no_output_rows_and_that_is_fine(testdata):
    facts = read(testdata / "checker.log")
    facts.require_tables()
    assert facts.checked
    assert not facts.converted
    assert facts.nodes
    assert not facts.outputs


@pytest.mark.parametrize("missing", ["Node  ", "Output  ", "FPS="])
def test_a_finished_run_without_a_table_is_an_error_and_not_an_empty_list(testdata, missing):
    lines = [x for x in (testdata / "policy_int8.log").read_text().splitlines() if not x.startswith(missing)]
    lines = [x for x in lines if missing not in x or missing != "FPS="]
    with pytest.raises(ParseError):
        parse_log(lines).require_tables()


def test_log_file_and_console_agree(testdata):
    console, file = read(testdata / "policy_int8.log"), read(testdata / "policy_int8.file.log")
    assert console.nodes == file.nodes
    assert console.outputs == file.outputs
    assert console.subgraphs == file.subgraphs


@given(st.lists(st.text(max_size=300), max_size=30))
def test_unknown_lines_never_break_it(lines):
    parse_log(lines)


@given(st.integers(0, 200), st.text(max_size=80))
def test_a_foreign_line_in_the_middle_of_a_real_log(testdata, at, line):
    lines = (testdata / "policy_int8.log").read_text().splitlines()
    lines.insert(min(at, len(lines)), line)
    assert parse_log(lines).converted


def test_a_record_right_behind_a_progress_bar_is_found():
    parser = LogParser()
    parser.feed("calibration in progress:  50%|## | 1/2 [00:00<00:00]2026-11-30 11:57:11,217 INFO Select max method.")
    assert parser.facts.chosen_method == "max"


def test_names_with_blanks_and_cut_names_stay_whole():
    reader = TableReader()
    for line in (
        "Node                 ON   Subgraph  Type              Cosine Similarity  Threshold  DataType  ",
        "---------------------",
        "my conv              BPU  id(0)     HzSQuantizedConv  0.999976           3.86976    int16     ",
        "...x/Add_output_0    CPU  --        Softmax           nan                --         float",
    ):
        reader.feed(line, False)
    assert [n.node for n in reader.nodes] == ["my conv", "...x/Add_output_0"]
    assert reader.nodes[0].cosine == 0.999976
    assert reader.nodes[1].cosine != reader.nodes[1].cosine
