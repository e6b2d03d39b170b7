import numpy as np
import onnx.parser

from boardlift_transform.check_branches import check_branches
from boardlift_transform.load_model import LoadedModel, load_model
from boardlift_transform.plan import PlannedPass

_STEPS = [PlannedPass(name, "") for name in ("fold-constants", "unroll-loop", "if-to-where", "eliminate-dead")]


def _model(body: str) -> LoadedModel:
    return load_model(
        onnx.parser.parse_model(
            f"""<ir_version: 7, opset_import: ["" : 13]>
            g (float[2] x) => (float[2] y) <float zero = {{0}}, float ten = {{10}}, int64 n = {{3}}> {{
              total = ReduceSum <keepdims: int = 0> (x)
              c = Greater (total, zero)
              {body}
            }}"""
        )
    )


_NESTED = """
y = If (c) <then_branch = p () => (float[2] a) {
  d = Greater (total, ten)
  a = If (d) <then_branch = r () => (float[2] m) { m = Neg (x) }, else_branch = s () => (float[2] o) { o = Relu (x) }>
}, else_branch = q () => (float[2] e) { e = Abs (x) }>
"""


def _findings(loaded: LoadedModel, *sums: float) -> dict[str, str]:
    feeds = [{"x": np.full(2, value / 2, np.float32)} for value in sums]
    found = check_branches(loaded, _STEPS, feeds, is_random=False)
    assert {f.code for f in found} <= {"BRANCH_NOT_TAKEN"}
    return {f.message.split(" branch ")[0].split()[-1]: f.message for f in found}


def test_an_inner_branch_counts_only_where_the_outer_one_is_taken() -> None:
    loaded = _model(_NESTED)
    assert _findings(loaded, 20, 5, -1) == {}
    assert "If(a" in _findings(loaded, 5, -1)["then"]  # nothing above 10
    told = _findings(loaded, 20, -1)["else"]  # -1 is below 10 as well, but there the inner If does not run
    assert "If(a" in told and "If(y)" not in told
    assert "If(y)" in _findings(loaded, 20, 5)["else"]


def test_every_step_of_a_loop_is_a_branch_of_its_own() -> None:
    loaded = _model(
        """y = Loop (n, , x) <body = b (int64 i, bool go, float[2] s) => (bool go, float[2] t) {
          most = ReduceMax <keepdims: int = 0> (s)
          small = Less (most, ten)
          t = If (small) <then_branch = r () => (float[2] m) { m = Add (s, s) },
                          else_branch = q () => (float[2] o) { o = Identity (s) }>
        }>"""
    )
    told = _findings(loaded, 20)  # 10, so no step doubles it
    assert set(told) == {"then"} and told["then"].count("If_") == 2
    assert _findings(loaded, 20, 2) == {}
    assert _findings(loaded, 20, 6)["then"].count("If") == 1  # 3, 6, 12: the last step keeps it


def test_a_model_without_such_an_if_has_nothing_to_tell() -> None:
    assert check_branches(_model("y = Relu (x)"), _STEPS, [], is_random=True) == []
