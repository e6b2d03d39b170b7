import onnx
import onnx.parser
import pytest

from boardlift_transform import Refusal, transform
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _parsed(body: str, outputs: str, opset: int = 13) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["" : {opset}]>
        g (float[2,5] x, float[2,5] z) => ({outputs})
        <int64 zero = {{0}}, int64 one = {{1}}, int64 last = {{-1}}, int64 two = {{2}}, int64[2] sizes = {{1, 4}}>
        {{ {body} }}"""
    )


def _replaced(body: str, outputs: str, opset: int = 13) -> PassRun:
    run = run_one_pass(_parsed(body, outputs, opset), "replace-sequences")
    assert not any("Sequence" in op for op in run.operators) and run.max_rel == 0
    return run


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_elements_by_place_inserted_erased_and_counted(opset: int) -> None:
    run = _replaced(
        """s = SequenceConstruct (x, z)
        t = SequenceInsert (s, z, zero)
        u = SequenceErase (t, one)
        a = SequenceAt (u, last)
        v = SequenceErase (t)
        b = ConcatFromSequence <axis: int = -1> (v)
        c = ConcatFromSequence <axis: int = 1, new_axis: int = 1> (t)
        n = SequenceLength (t)
        y = Neg (a)""",
        "float[2,5] y, float[2,10] b, float[2,3,5] c, int64 n",
        opset,
    )
    assert run.operators.count("Concat") == 2 and "Neg" in run.operators


@pytest.mark.parametrize(
    ("split", "shapes", "operator"),
    [
        ("<axis: int = 1> (x)", ("[2,1]", "[2,1]"), "Slice"),
        ("<axis: int = 1, keepdims: int = 0> (x)", ("[2]", "[2]"), "Gather"),
        ("<axis: int = -1> (x, two)", ("[2,2]", "[2,1]"), "Slice"),
        ("<axis: int = 1> (x, sizes)", ("[2,1]", "[2,4]"), "Slice"),
    ],
)
def test_a_tensor_cut_into_a_sequence(split: str, shapes: tuple[str, str], operator: str) -> None:
    run = _replaced(
        f"s = SplitToSequence {split} a = SequenceAt (s, zero) b = SequenceAt (s, last) y = Neg (a)",
        f"float{shapes[0]} y, float{shapes[1]} b",
    )
    assert run.operators == [operator, operator, "Neg"] or run.operators == [operator, "Neg", operator]


def test_the_plan_has_it_only_for_models_with_sequences() -> None:
    model = _parsed("s = SequenceConstruct (x, z) y = ConcatFromSequence <axis: int = 0> (s)", "float[4,5] y")
    assert "replace-sequences" in [p.id for p in transform(model).plan.passes]
    plain = transform(_parsed("y = Add (x, z)", "float[2,5] y"))
    assert "replace-sequences" not in [p.id for p in plain.plan.passes]


def test_a_place_that_is_computed_is_refused_by_name() -> None:
    model = _parsed(
        """s = SequenceConstruct (x, z)
        m = ReduceMax <keepdims: int = 0> (x)
        i = Cast <to: int = 7> (m)
        y = SequenceAt (s, i)""",
        "float[2,5] y",
    )
    with pytest.raises(Refusal, match=r"SEQUENCE_ON_DATA.*SequenceAt") as caught:
        run_one_pass(model, "replace-sequences")
    assert caught.value.metadata["node"] == "SequenceAt(y)"
