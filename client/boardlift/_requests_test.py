from __future__ import annotations

import pytest

from boardlift._requests import Model, RunOptions, board_selector, job_spec, parse_variant, transform_spec, variant_spec
from boardlift.errors import InvalidInputError
from boardlift.models import Artifact, Gate, InputFormat, Variant

MODEL = Model(Artifact("a" * 64), (Artifact("b" * 64, name="w.data"),), "policy.onnx")


def test_everything_of_a_job_arrives_in_the_message():
    options = RunOptions(
        outputs=("actions",),
        input_shapes={"obs": (1, 225)},
        freeze={"sr": 16000, "state": [[0.5, 1.0]]},
        gates=(Gate.parse("cosine>=0.99"), Gate.parse("max_abs@actions<=0.2")),
        board="soc=x5,lab=a",
        governor="performance",
        threads=(1, 4),
        sustained_s=120,
        limit_s=60,
        name="n" * 120,
        command=("boardlift", "run"),
    )
    variant = Variant("best", "int16", inputs=(InputFormat("image", "rgb", "nv12", mean=(1, 2, 3)),))
    spec = job_spec(
        MODEL, Artifact("c" * 64), ["int8", variant, "m=mixed,calibration=max,int16=/a;/b,level=O2"], options
    )
    assert spec.model.external_data[0].name == "w.data" and spec.model_name == "policy.onnx"
    assert list(spec.transform.outputs) == ["actions"] and list(spec.transform.input_shapes[0].shape) == [1, 225]
    assert dict(spec.transform.frozen_inputs) == {"sr": "16000", "state": "[[0.5, 1.0]]"}
    assert [(v.name, v.preset) for v in spec.variants] == [("int8", "int8"), ("best", "int16"), ("m", "mixed")]
    assert spec.variants[1].inputs[0].type_rt == "nv12" and spec.variants[1].inputs[0].mean_value == [1, 2, 3]
    assert [node.node for node in spec.variants[2].nodes] == ["/a", "/b"]
    assert spec.variants[2].calibration.method == "max" and spec.variants[2].compiler.optimize_level == "O2"
    assert spec.gates[0].minimum == 0.99 and not spec.gates[0].HasField("maximum")
    assert spec.gates[1].maximum == 0.2 and spec.gates[1].output == "actions"
    assert dict(spec.board.labels) == {"soc": "x5", "lab": "a"} and spec.limit_duration.seconds == 60
    assert spec.perf.governor == "performance" and list(spec.perf.threads) == [1, 4]
    assert spec.perf.sustained_duration.seconds == 120
    assert len(spec.display_name) == 100 and list(spec.command) == ["boardlift", "run"]


def test_arrays_are_frozen_by_what_they_hold():
    numpy = pytest.importorskip("numpy")
    options = RunOptions(freeze={"sr": numpy.int64(16000), "state": numpy.zeros((1, 2), numpy.float32)})
    assert dict(transform_spec(options).frozen_inputs) == {"sr": "16000", "state": "[[0.0, 0.0]]"}


@pytest.mark.parametrize("value", [float("nan"), object(), {1}])
def test_values_that_are_no_numbers_are_not_frozen(value):
    with pytest.raises(InvalidInputError) as caught:
        transform_spec(RunOptions(freeze={"sr": value}))
    assert caught.value.reason == "FREEZE_INVALID"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cosine>=0.99", Gate("cosine", minimum=0.99)),
        ("max_abs <= 2e-1", Gate("max_abs", maximum=0.2)),
        ("max_abs@a/b<=.5", Gate("max_abs", maximum=0.5, output="a/b")),
        ("bit_exact", Gate("bit_exact", minimum=1.0)),
        ("estimated_latency_us<=500", Gate("estimated_latency_us", maximum=500)),
    ],
)
def test_gates_are_parsed_and_printed(text, expected):
    assert Gate.parse(text) == expected
    assert expected.metric in str(expected)


@pytest.mark.parametrize("text", ["", "cosine>0.9", "cosine>=x", "Cosine>=1", "cosine>=", ">=1", "cosine>=1;rm"])
def test_other_texts_are_no_gates(text):
    with pytest.raises(InvalidInputError, match="GATE_INVALID"):
        Gate.parse(text)


def test_variant_numbers_and_flags():
    assert parse_variant("int8,level=O1") == Variant("int8", level="O1")
    variant = parse_variant("a=int8,percentile=0.999,per-channel=true,purpose=preview,cpu=/x")
    assert variant == Variant("a", "int8", percentile=0.999, per_channel=True, purpose="preview", cpu=("/x",))
    with pytest.raises(InvalidInputError, match="VARIANT_INVALID"):
        parse_variant("a=int8,percentile=high")
    with pytest.raises(InvalidInputError, match="neither yes nor no"):
        parse_variant("a=int8,per-channel=on")


def test_boards_by_id_or_labels():
    assert board_selector("x5-1").id == "x5-1"
    with pytest.raises(InvalidInputError, match="LABEL_INVALID"):
        board_selector("=x")


def test_a_gate_is_printed_as_it_was_given():
    assert str(Gate.parse("cosine>=0.9999999")) == "cosine ≥ 0.9999999"


def test_nodes_in_int16_are_asked_as_a_suggested_plan_asks_them():
    (node,) = variant_spec(parse_variant("mixed-plan=int8,calibration=max,int16=Gemm_1")).nodes
    assert (node.node, node.input_type, node.output_type) == ("Gemm_1", "int16", "")
