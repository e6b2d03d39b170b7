import numpy as np
import onnx
import onnx.parser
import pytest

from boardlift_transform import Refusal, transform
from boardlift_transform.edit_graph import Array
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _parsed(text: str, opset: int = 13) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["" : {opset}]>\n{text}')


def _signs(*shape: int) -> list[dict[str, Array]]:
    x = np.asarray(np.random.default_rng(0).standard_normal(shape), np.float32)
    return [{"x": np.asarray(np.abs(x))}, {"x": np.asarray(-np.abs(x))}]


def _converted(text: str, *shape: int, opset: int = 13) -> PassRun:
    """Both branches are taken, one by each sample."""
    run = run_one_pass(_parsed(text, opset), "if-to-where", samples=_signs(*shape))
    assert "If" not in run.operators and run.max_rel == 0
    return run


_IF = """g (float[{dims}] x) => ({kind}[{dims}] y) <float zero = {{0}}, float two = {{2}}> {{
  total = ReduceSum <keepdims: int = 0> (x)
  c = Greater (total, zero)
  y = If (c) <then_branch = p () => ({kind}[{dims}] a) {{ {then} }},
              else_branch = q () => ({kind}[{dims}] e) {{ {other} }}>
}}"""


@pytest.mark.parametrize("shape", [(), (3,), (1, 4), (2, 4), (1, 3, 4), (1, 3, 4, 5), (2, 1, 3, 4, 5)])
def test_both_branches_and_a_where_of_any_rank(shape: tuple[int, ...]) -> None:
    dims = ",".join(map(str, shape))
    text = _IF.format(dims=dims, kind="float", then="a = Add (x, two)", other="e = Mul (x, two)")
    if not shape:
        text = text.replace("ReduceSum <keepdims: int = 0> (x)", "Identity (x)").replace("float[]", "float")
    run = _converted(text, *shape)
    where = next(n for n in run.model.graph.node if n.op_type == "Where")
    condition = next(n for n in run.model.graph.node if where.input[0] in n.output)
    assert condition.op_type == "Reshape"
    assert run.result.applied[-1].before == "If"


@pytest.mark.parametrize(
    ("kind", "then", "other", "wanted"),
    [
        ("int64", "a = Cast <to: int = 7> (x)", "t = Mul (x, two) e = Cast <to: int = 7> (t)", "Where"),
        ("bool", "a = Greater (x, two)", "e = Less (x, zero)", "Or"),
        ("double", "a = Cast <to: int = 11> (x)", "t = Mul (x, two) e = Cast <to: int = 11> (t)", "Where"),
    ],
)
def test_other_types(kind: str, then: str, other: str, wanted: str) -> None:
    text = _IF.format(dims="1,4", kind=kind, then=then, other=other)
    assert wanted in _converted(text, 1, 4).operators


def test_nested_branches_with_constants_of_the_same_names_and_an_output_that_both_share() -> None:
    run = _converted(
        """g (float[1,4] x) => (float[1,4] y, float[1,4] z) <float zero = {0}, float big = {5}> {
          total = ReduceSum <keepdims: int = 0> (x)
          c = Greater (total, zero)
          y, z = If (c) <then_branch = p () => (float[1,4] a, float[1,4] same) {
            k = Constant <value = float {3}> ()
            d = Greater (total, big)
            a = If (d) <then_branch = r () => (float[1,4] m) { m = Mul (x, k) },
                        else_branch = s () => (float[1,4] n) { n = Sub (x, k) }>
            same = Identity (x)
          }, else_branch = q () => (float[1,4] e, float[1,4] same2) {
            k = Constant <value = float {4}> ()
            e = Add (x, k)
            same2 = Identity (x)
          }>
        }""",
        1,
        4,
    )
    assert run.operators.count("Where") == 2  # z is x


@pytest.mark.parametrize(
    ("then", "other"),
    [("a = Add (x, two)", "e = ReduceSum (x)"), ("a = Add (x, two)", "e = Cast <to: int = 6> (x)")],
)
def test_branches_of_different_shape_or_type_are_refused_by_name(then: str, other: str) -> None:
    text = _IF.format(dims="1,4", kind="float", then=then, other=other)
    text = text.replace("(float[1,4] a)", "(float[r,s] a)").replace("(float[1,4] e)", "(float[r,s] e)")
    model = _parsed(text.replace("=> (float[1,4] y)", "=> (float[r,s] y)"))
    with pytest.raises(Refusal) as caught:
        run_one_pass(model, "if-to-where")
    assert caught.value.reason == "BRANCHES_DIFFER" and caught.value.metadata["node"] == "If(y)"


def _policy() -> onnx.ModelProto:
    """Two small networks, one for each sign of the sum."""
    weights = ", ".join(str(v / 16) for v in range(-8, 8))
    return _parsed(
        f"""g (float[1,4] x) => (float[1,4] y) <float[4,4] w = {{{weights}}}, float zero = {{0}}> {{
          total = ReduceSum <keepdims: int = 0> (x)
          c = Greater (total, zero)
          y = If (c) <then_branch = p () => (float[1,4] a) {{ m = MatMul (x, w) a = Tanh (m) }},
                      else_branch = q () => (float[1,4] e) {{ l = Log (total) n = Mul (x, l) e = MatMul (n, w) }}>
        }}"""
    )


def test_a_side_that_no_sample_takes_is_told_and_both_taken_tells_nothing() -> None:
    model = _policy()
    model.graph.node[2].attribute[1].g.node[0].op_type = "Abs"
    feeds = np.stack([f["x"] for f in _signs(1, 4)])
    both = transform(model, samples={"x": feeds})
    assert "BRANCH_NOT_TAKEN" not in {f.code for f in both.findings}
    assert "if-to-where" in [p.id for p in both.plan.passes]
    one = next(f for f in transform(model, samples={"x": feeds[:1]}).findings if f.code == "BRANCH_NOT_TAKEN")
    assert one.severity == "warning" and "none of 1 samples takes the else branch of If(y)" in one.message


def test_a_branch_that_is_no_number_where_it_is_not_taken_is_refused() -> None:
    model = _policy()
    nodes = model.graph.node[2].attribute
    then, other = (nodes[i].g for i in (0, 1))
    assert {a.name for a in nodes} == {"then_branch", "else_branch"} and then.node and other.node
    model.graph.node[1].op_type = "Less"  # the logarithm is taken of positive sums only
    feeds = np.stack([f["x"] for f in _signs(1, 4)])
    with pytest.raises(Refusal) as caught:
        transform(model, samples={"x": feeds})
    assert caught.value.reason == "BRANCH_NOT_FINITE" and caught.value.metadata["sample"] == "1"
    assert transform(model, samples={"x": feeds[:1]}).proof.passed
