import pytest

from boardlift_compiler.detect_fallbacks import find_fallbacks, placement_reasons
from boardlift_compiler.foresee import foresee
from boardlift_compiler.parse_log import LogFacts, parse_log
from boardlift_compiler.parse_tables import NodeRow
from boardlift_compiler.read_model import ModelSummary, Node, read_model
from boardlift_compiler.spec import CalibrationSpec, CompileSpec, NodeOverride

INT16 = CompileSpec(calibration=CalibrationSpec("max", optimization=("set_all_nodes_int16",)))


def facts_of(path):
    return parse_log(path.read_text().splitlines())


def codes(findings):
    return [f.code for f in findings]


def test_int16_asked_and_int8_built_is_an_error_that_names_node_and_cure(models, testdata):
    model = read_model(models.policy((225, 512, 12)).SerializeToString())
    wide = read_model(models.policy((225, 512, 512, 12)).SerializeToString())
    facts = facts_of(testdata / "policy_int16.log")
    found = find_fallbacks(INT16, wide, facts, facts.samples, dict(enumerate(facts.first_md5)))
    (fallback,) = [f for f in found if f.code == "INT16_FELL_BACK"]
    assert (fallback.severity, fallback.subject) == ("error", "fc2")
    assert "512 input channels" in fallback.message
    assert "split-wide-head" in fallback.remedy
    assert model.nodes


def test_cpu_islands_have_a_reason_and_advice(models, testdata):
    model = read_model(models.two_islands().SerializeToString())
    facts = facts_of(testdata / "two_islands.log")
    found = find_fallbacks(CompileSpec(), model, facts, facts.samples, dict(enumerate(facts.first_md5)))
    (island,) = [f for f in found if f.code == "NODE_ON_CPU"]
    assert island.subject == "sm"
    assert "Softmax" in island.message
    assert "set_Softmax" in island.remedy


def table(device="BPU", dtype="int8", node="op", kind="HzLut"):
    return LogFacts(nodes=[NodeRow(node, device, 0 if device == "BPU" else -1, kind, 0.99, "1.0", dtype)], samples=4)


@pytest.mark.parametrize(
    ("spec", "facts", "expected"),
    [
        (CompileSpec(nodes=(NodeOverride("op", "BPU"),)), table("CPU", "float"), "BPU_FELL_BACK"),
        (CompileSpec(nodes=(NodeOverride("op", "CPU"),)), table("BPU"), "CPU_NOT_HONOURED"),
        (CompileSpec(nodes=(NodeOverride("op", input_type="int16"),)), table(), "INT16_FELL_BACK"),
        (CompileSpec(), LogFacts(samples=3), "SAMPLES_NOT_READ"),
        (CompileSpec(), LogFacts(samples=4, first_md5=["other"]), "SAMPLES_NOT_OURS"),
        (CompileSpec(), LogFacts(samples=4, batch_fallback=True), "CALIBRATION_BATCH_FALLBACK"),
    ],
)  # fmt: skip
def test_nothing_falls_back_in_silence(models, spec, facts, expected):
    model = read_model(models.small().SerializeToString())
    assert expected in codes(find_fallbacks(spec, model, facts, 4, {"x": "md5"}))


REFUSED = "The input1 of Node(name:op, type:Mul) does not support data type: int16"


@pytest.mark.parametrize(
    ("spec", "facts", "cpu_ops", "expected"),
    [
        (CompileSpec(nodes=(NodeOverride("op", input_types={1: "int16"}),)),
         LogFacts(samples=4, warnings=[REFUSED]), {}, [("error", "INT16_FELL_BACK")]),
        (CompileSpec(nodes=(NodeOverride("op", input_types={0: "int16"}),)),
         LogFacts(samples=4, warnings=[REFUSED]), {}, [("warning", "INT16_NOT_SHOWN")]),
        (CompileSpec(nodes=(NodeOverride("op", input_types={0: "int16"}),)), table(), {},
         [("error", "INT16_FELL_BACK")]),
        (CompileSpec(nodes=(NodeOverride("op", input_types={0: "int16"}),)), table(dtype="int16"), {}, []),
        (CompileSpec(nodes=(NodeOverride("op", "BPU"),)), LogFacts(samples=4), {"op": "Cast"},
         [("warning", "NODE_ON_CPU"), ("error", "BPU_FELL_BACK")]),
        (CompileSpec(), LogFacts(samples=4), {"op": "Cast", "made_by_the_tool": "Transpose"},
         [("warning", "NODE_ON_CPU")]),
        (CompileSpec(calibration=CalibrationSpec(optimization=("set_Relu_input_int16",))), table("CPU", "float"), {},
         [("warning", "NODE_ON_CPU"), ("error", "BPU_FELL_BACK")]),
        (CompileSpec(calibration=CalibrationSpec(optimization=("set_Relu_input_int16",))), table(), {},
         [("error", "INT16_FELL_BACK")]),
        (CompileSpec(preset="fast-perf", calibration=CalibrationSpec(optimization=("set_Relu_input_int8",))),
         table("CPU", "float"), {}, [("warning", "NODE_ON_CPU")]),
    ],
)  # fmt: skip
def test_what_the_tools_table_leaves_out_or_shows_in_part_is_found(models, spec, facts, cpu_ops, expected):
    model = read_model(models.small("Relu").SerializeToString())
    facts.first_md5 = ["md5"]
    found = find_fallbacks(spec, model, facts, 4, {"x": "md5"}, cpu_ops)
    assert [(f.severity, f.code) for f in found] == expected
    assert all(f.subject == "op" for f in found)


def test_what_was_asked_for_is_no_fallback(models):
    model = read_model(models.small().SerializeToString())
    spec = CompileSpec(nodes=(NodeOverride("op", "CPU"),))
    found = find_fallbacks(spec, model, table("CPU", "float"), 4, {})
    assert "NODE_ON_CPU" not in codes(found)
    assert placement_reasons(spec, model, table("CPU", "float")) == {"op": "as asked"}


def test_an_output_that_was_asked_in_int16_and_is_read_in_int8_is_a_fallback(models):
    model = read_model(models.small("GlobalAveragePool").SerializeToString())
    log = LogFacts(samples=4, warnings=["The output of Node(name:c1) is int16, then requantized to int8"])
    for dtype, told in (("int16", ["INT16_FELL_BACK"]), ("", [])):
        spec = CompileSpec(nodes=(NodeOverride("c1", output_type=dtype),))
        assert codes(find_fallbacks(spec, model, log, 4, {})) == told


def test_names_that_the_table_shortens_alike_are_told_apart_by_the_compiled_model():
    names = [f"/encoder/stage{k}/a/very/long/tail/of/module/names/that/goes/on/Softmax" for k in (0, 1)]
    nodes = tuple(Node(n, "Softmax", "", (f"x{k}",), (f"y{k}",), {}) for k, n in enumerate(names))
    model = ModelSummary(7, {"": 11}, "g", (), (), nodes, {})
    short = "..." + names[0][-47:]
    rows = [NodeRow(short, d, 0 if d == "BPU" else -1, "Softmax", 0.9, "1.0", "int8") for d in ("CPU", "BPU")]
    spec = CompileSpec(nodes=tuple(NodeOverride(n, "BPU") for n in names))
    found = find_fallbacks(spec, model, LogFacts(nodes=rows, samples=4), 4, {}, {names[0]: "Softmax"})
    assert [f.subject for f in found if f.code == "BPU_FELL_BACK"] == [names[0]]


def test_an_operator_that_a_neighbour_keeps_on_the_cpu_names_it():
    nodes = (
        Node("elu", "Elu", "", ("x",), ("a",), {}),
        Node("unsqueeze", "Unsqueeze", "", ("a",), ("b",), {}),
        Node("neg", "Neg", "", ("b",), ("c",), {}),
        Node("relu", "Relu", "", ("d",), ("e",), {}),
    )
    model = ModelSummary(7, {"": 11}, "g", (), (), nodes, {})
    rows = [NodeRow(n, "CPU", -1, n.title(), 0.99, "1.0", "float") for n in ("elu", "neg", "relu")]
    assert placement_reasons(CompileSpec(), model, LogFacts(nodes=rows, samples=4)) == {
        "elu": "Elu stays with neg (Neg) behind it, which runs on the CPU",
        "neg": "Neg always runs on the CPU on this chip",
        "relu": "Relu has no BPU form in this place",
    }


@pytest.mark.parametrize(
    ("op", "attributes", "spec", "expected"),
    [
        ("Neg", {}, CompileSpec(), "NODE_WILL_RUN_ON_CPU"),
        ("Softmax", {"axis": 1}, INT16, "NODE_WILL_RUN_ON_CPU"),
        ("ReduceMax", {"axes": [2, 3]}, CompileSpec(), "NODE_WILL_RUN_ON_CPU"),
        ("ReduceMean", {"axes": [-1, -2]}, CompileSpec(), "NODE_WILL_RUN_ON_CPU"),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, CompileSpec(), "AVERAGEPOOL_BORDER_WRONG"),
        ("MaxPool", {"kernel_shape": [3, 3], "pads": [0, 0, 1, 1]}, INT16, "INT16_MAXPOOL_BORDER_WRONG"),
        ("GlobalAveragePool", {}, INT16, "INT16_WILL_FALL_BACK"),
    ],
)
def test_what_is_known_is_said_before(models, op, attributes, spec, expected):
    model = read_model(models.small(op, attributes=attributes).SerializeToString())
    assert expected in codes(foresee(spec, model))


@pytest.mark.parametrize(
    ("op", "attributes", "spec"),
    [
        ("Relu", {}, INT16),
        ("Softmax", {"axis": 3}, INT16),
        ("ReduceMax", {"axes": [1]}, CompileSpec()),
        ("ReduceMean", {"axes": [-2, -1]}, CompileSpec()),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, CompileSpec()),
        ("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, INT16),
        ("MaxPool", {"kernel_shape": [3, 3], "pads": [0, 0, 1, 1]}, CompileSpec()),
    ],
)
def test_and_nothing_else(models, op, attributes, spec):
    model = read_model(models.small(op, attributes=attributes).SerializeToString())
    assert not [c for c in codes(foresee(spec, model)) if c != "INT16_WILL_FALL_BACK"]


@pytest.mark.shared
def test_the_operator_table_agrees_with_every_measured_case(shared_logs):
    """Every operator that the table puts on the CPU in all cases was measured there in all cases."""
    import csv

    from boardlift_compiler.op_truth import ALWAYS_CPU

    with (shared_logs.parent / "op_truth.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["op"] in ALWAYS_CPU:
            assert "BPU" not in (row["checker_on"], row["int8_on"], row["int16_on"]), row["case"]
