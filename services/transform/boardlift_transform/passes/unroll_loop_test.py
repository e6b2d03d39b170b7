import time

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

from boardlift_transform import Refusal, transform
from boardlift_transform.run_one_pass import PassRun, run_one_pass

_WEIGHT = "float[4,4] w = {" + ", ".join(str(v / 16) for v in range(-8, 8)) + "}"


def _parsed(text: str, opset: int = 13) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["" : {opset}]>\n{text}')


def _unrolled(text: str, opset: int = 13) -> PassRun:
    run = run_one_pass(_parsed(text, opset), "unroll-loop")
    assert not {"Loop", "If"} & set(run.operators) and run.max_rel <= 1e-6
    return run


@pytest.mark.parametrize("opset", [11, 13, 17, 20])
def test_carried_value_outer_weight_and_what_is_collected_per_step(opset: int) -> None:
    axes = (
        ("<axes: ints = [1], keepdims: int = 0> (next)", "") if opset < 13 else ("<keepdims: int = 0> (next, one)", "")
    )
    run = _unrolled(
        f"""g (float[1,4] x) => (float[1,4] y, float[5,1] sums)
        <{_WEIGHT}, int64 n = {{5}}, bool go = {{1}}, int64[1] one = {{1}}> {{
          y, sums = Loop (n, go, x) <body = b (int64 i, bool c, float[1,4] s)
              => (bool c2, float[1,4] next, float[1] row) {{
            m = MatMul (s, w)
            next = Tanh (m)
            row = ReduceSum {axes[0]}
            c2 = Identity (c)
          }}>
        }}""",
        opset,
    )
    assert run.operators.count("MatMul") == 5 and run.operators.count("Unsqueeze") == 5
    assert run.result.applied[-1].after == "5 steps of 4 nodes"


def test_the_step_number_is_a_constant_of_each_step() -> None:
    run = _unrolled(
        """g (float[3,4] x) => (float[4] y, int64[3] steps)
        <int64 n = {3}, bool go = {1}, float[4] zero = {0, 0, 0, 0}> {
          y, steps = Loop (n, go, zero) <body = b (int64 i, bool c, float[4] s) => (bool c, float[4] next, int64 i2) {
            row = Gather <axis: int = 0> (x, i)
            scale = Cast <to: int = 1> (i)
            part = Mul (row, scale)
            next = Add (s, part)
            i2 = Identity (i)
          }>
        }"""
    )
    assert "Cast" not in run.operators
    assert run.operators[-1] == "Identity"  # the constant output


def test_a_while_over_a_counter_ends_where_its_condition_folds_to_false() -> None:
    run = _unrolled(
        """g (float[1,4] x) => (float[1,4] y, int64 count)
        <int64 zero = {0}, int64 one = {1}, int64 four = {4}, int64 most = {9223372036854775807}, bool go = {1}> {
          y, count = Loop (most, go, x, zero) <body = b (int64 i, bool c, float[1,4] s, int64 k)
              => (bool again, float[1,4] next, int64 k2) {
            next = Mul (s, s)
            k2 = Add (k, one)
            again = Less (k2, four)
          }>
        }"""
    )
    assert run.operators.count("Mul") == 4


def test_inner_loops_whose_count_is_the_outer_step() -> None:
    run = _unrolled(
        f"""g (float[1,4] x) => (float[1,4] y) <{_WEIGHT}, int64 n = {{3}}> {{
          y = Loop (n, , x) <body = outer (int64 i, bool c, float[1,4] s) => (bool c, float[1,4] t) {{
            t = Loop (i, , s) <body = inner (int64 j, bool d, float[1,4] u) => (bool d, float[1,4] v) {{
              m = MatMul (u, w)
              v = Add (m, s)
            }}>
          }}>
        }}"""
    )
    assert run.operators.count("MatMul") == 3  # 0 + 1 + 2


def test_an_if_on_the_step_number_is_the_branch_that_it_takes() -> None:
    run = _unrolled(
        """g (float[1,4] x) => (float[1,4] y) <int64 n = {4}, int64 two = {2}> {
          y = Loop (n, , x) <body = b (int64 i, bool c, float[1,4] s) => (bool c, float[1,4] t) {
            early = Less (i, two)
            t = If (early) <then_branch = p () => (float[1,4] a) { a = Relu (s) },
                            else_branch = q () => (float[1,4] e) { e = Mul (s, x) }>
          }>
        }"""
    )
    assert run.operators == ["Relu", "Relu", "Mul", "Mul"]


def test_a_value_that_grows_with_every_step() -> None:
    run = _unrolled(
        """g (float[1,4] x) => (float[4,4] y) <int64 n = {3}> {
          y = Loop (n, , x) <body = b (int64 i, bool c, float[r,4] s) => (bool c, float[r2,4] t) {
            t = Concat <axis: int = 0> (s, x)
          }>
        }"""
    )
    assert run.operators == ["Concat"] * 3


def test_no_step_leaves_the_first_value_and_a_swap_keeps_both() -> None:
    run = _unrolled(
        """g (float[2] x, float[2] z) => (float[2] y, float[2] p, float[2] q) <int64 none = {0}, int64 n = {3}> {
          y = Loop (none, , x) <body = b (int64 i, bool c, float[2] s) => (bool c, float[2] t) { t = Neg (s) }>
          p, q = Loop (n, , x, z) <body = d (int64 i2, bool c2, float[2] u, float[2] v)
              => (bool c2, float[2] v, float[2] u) { unused = Neg (u) }>
        }"""
    )
    assert "Neg" not in run.operators


_COUNTED = """g (float[1,4] x, int64 count) => (float[1,4] y) <int64 n = {9}, float zero = {0}> {
  y = Loop (%s, , x) <body = b (int64 i, bool c, float[1,4] s) => (bool again, float[1,4] t) {
    t = Sub (s, x)
    total = ReduceMax <keepdims: int = 0> (t)
    %s
  }>
}"""


@pytest.mark.parametrize(
    ("trips", "last", "reason", "told"),
    [
        ("count", "again = Identity (c)", "LOOP_ON_DATA", "count"),
        ("", "again = Greater (total, zero)", "LOOP_ON_DATA", "nothing bounds it"),
        ("n", "again = Not (c)", "", ""),
    ],
)
def test_what_the_data_decide_is_refused_by_name(trips: str, last: str, reason: str, told: str) -> None:
    model = _parsed(_COUNTED % (trips, last))
    if not reason:
        assert run_one_pass(model, "unroll-loop").operators == ["Sub"]
        return
    with pytest.raises(Refusal) as caught:
        transform(model)
    assert caught.value.reason == reason and told in caught.value.message
    assert caught.value.metadata["node"] == "Loop(y)" and "frozen_inputs" in caught.value.remedy


_BREAK = """g (float[1,4] x) => (float[1,4] y, int64 count) <%s float big = {4}, int64 zero = {0}, int64 one = {1}> {
  y, count = Loop (%s, , x, zero) <body = b (int64 i, bool c, float[1,4] s, int64 k)
      => (bool again, float[1,4] t, int64 k2) {
    t = Add (s, s)
    k2 = Add (k, one)
    most = ReduceMax <keepdims: int = 0> (t)
    small = Less (most, big)
    %s
  }>
}"""


@pytest.mark.parametrize(
    ("constants", "trips", "again"),
    [
        ("int64 n = {4},", "n", "again = Identity (small)"),
        ("int64 top = {9223372036854775807}, int64 n = {4},", "top", "few = Less (k2, n) again = And (few, small)"),
    ],
)
def test_a_loop_that_the_data_may_end_before_its_bound(constants: str, trips: str, again: str) -> None:
    model = _parsed(_BREAK % (constants, trips, again))
    feeds = [{"x": np.full((1, 4), value, np.float32)} for value in (8.0, 1.5, 0.6, 0.3, 0.01)]  # 1, 2, 3, 4, 4 steps
    run = run_one_pass(model, "unroll-loop", samples=feeds)
    assert run.operators.count("If") == 3 and "Loop" not in run.operators and run.max_rel == 0
    assert run.result.applied[-1].after.endswith("3 of them in an If")
    result = transform(model, samples={"x": np.stack([f["x"] for f in feeds])})
    assert not {"If", "Loop"} & {n.op_type for n in result.model.graph.node}
    assert "BRANCH_NOT_TAKEN" not in {f.code for f in result.findings}
    few = transform(model, samples={"x": np.stack([f["x"] for f in feeds[:2]])})
    assert [f.subject for f in few.findings if f.code == "BRANCH_NOT_TAKEN"] == ["Loop(y)_step_3"]


def test_rows_whose_number_the_data_decide_are_refused() -> None:
    text = """g (float[4] x) => (float[4] y, float[r,4] rows) <int64 n = {3}, float big = {4}> {
      y, rows = Loop (n, , x) <body = b (int64 i, bool c, float[4] s) => (bool again, float[4] t, float[4] u) {
        t = Add (s, s)
        u = Identity (t)
        most = ReduceMax <keepdims: int = 0> (t)
        again = Less (most, big)
      }>
    }"""
    with pytest.raises(Refusal, match=r"LOOP_ON_DATA.*rows"):
        transform(_parsed(text))


def test_tensors_collected_in_a_sequence_and_a_second_loop_over_its_length() -> None:
    run = _unrolled(
        """g (float[1,4] x) => (float[1,3,4] y, float[1,4] z) <int64 n = {3}> {
          none = SequenceEmpty <dtype: int = 1> ()
          last, all = Loop (n, , x, none) <body = b (int64 i, bool c, float[1,4] s, seq(float[1,4]) q)
              => (bool c, float[1,4] t, seq(float[1,4]) q2) {
            t = Add (s, s)
            q2 = SequenceInsert (q, t)
          }>
          y = ConcatFromSequence <axis: int = 1, new_axis: int = 1> (all)
          length = SequenceLength (all)
          z = Loop (length, , x) <body = d (int64 j, bool e, float[1,4] u) => (bool e, float[1,4] v) {
            one = SequenceAt (all, j)
            v = Mul (u, one)
          }>
        }"""
    )
    assert run.operators.count("Mul") == 3 and not any("Sequence" in op for op in run.operators)


@pytest.mark.parametrize("opset", [11, 16, 20])
def test_a_scan_forwards_and_backwards_over_any_axis(opset: int) -> None:
    run = _unrolled(
        """g (float[2,3] x, float[3,4] z, float[2] start) => (float[2] last, float[2,3] sums, float[3,4] again) {
          last, sums, again = Scan <num_scan_inputs: int = 2, scan_input_axes: ints = [-1, 0],
              scan_input_directions: ints = [0, 1], scan_output_axes: ints = [1, 0],
              scan_output_directions: ints = [0, 1],
              body = b (float[2] s, float[2] xt, float[4] zt) => (float[2] t, float[2] u, float[4] zu) {
                t = Add (s, xt)
                u = Mul (t, t)
                zu = Neg (zt)
              }> (start, x, z)
        }""",
        opset,
    )
    assert run.operators.count("Add") == 3 and "Scan" not in run.operators
    assert run.result.applied[-1].after == "3 steps of 3 nodes"


def test_a_scan_in_a_loop_with_a_loop_inside() -> None:
    run = _unrolled(
        """g (float[3,4] x) => (float[4] y) <int64 n = {2}, float[4] zero = {0, 0, 0, 0}> {
          y = Loop (n, , zero) <body = b (int64 i, bool c, float[4] s) => (bool c, float[4] t) {
            t = Scan <num_scan_inputs: int = 1, body = d (float[4] p, float[4] row) => (float[4] q) {
              q = Loop (i, , p) <body = e (int64 j, bool f, float[4] v) => (bool f, float[4] w) { w = Add (v, row) }>
            }> (s, x)
          }>
        }"""
    )
    assert run.operators.count("Add") == 3  # no step of the inner loop, then one, for three rows each


def test_a_scan_over_too_many_rows_is_refused() -> None:
    model = _parsed(
        """g (float[9000,2] x, float[2] s) => (float[2] y) {
          y = Scan <num_scan_inputs: int = 1,
                    body = b (float[2] p, float[2] r) => (float[2] q) { q = Add (p, r) }> (s, x)
        }"""
    )
    with pytest.raises(Refusal, match=r"LOOP_TOO_LONG.*9000 steps of 1 nodes"):
        run_one_pass(model, "unroll-loop")


def test_a_count_that_is_frozen_is_a_constant() -> None:
    model = _parsed(_COUNTED % ("count", "again = Identity (c)"))
    result = transform(model, frozen_inputs={"count": np.asarray(3)})
    assert result.proof.passed and [n.op_type for n in result.model.graph.node].count("Sub") == 3


@pytest.mark.parametrize("trips", [10**6, 2**62])
def test_a_loop_without_end_is_refused_soon(trips: int) -> None:
    model = _parsed((_COUNTED % ("n", "again = Identity (c)")).replace("{9}", f"{{{trips}}}"))
    started = time.monotonic()
    with pytest.raises(Refusal, match="LOOP_TOO_LONG"):
        transform(model)
    assert time.monotonic() - started < 60


def test_the_result_needs_no_control_flow_and_the_plan_names_the_pass_only_for_models_with_a_loop() -> None:
    model = _parsed(
        f"""g (float[1,4] x) => (float[1,4] y) <{_WEIGHT}, int64 n = {{2}}> {{
          y = Loop (n, , x) <body = b (int64 i, bool c, float[1,4] s) => (bool c, float[1,4] t) {{ t = MatMul (s, w) }}>
        }}"""
    )
    result = transform(model)
    assert [n.op_type for n in result.model.graph.node].count("Conv") == 2
    assert "unroll-loop" in [p.id for p in result.plan.passes]
    plain = helper.make_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", model.graph.input, model.graph.output),
        opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
    )  # fmt: skip
    assert "unroll-loop" not in [p.id for p in transform(plain).plan.passes]
