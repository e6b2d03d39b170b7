import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.equivalence import compare_results
from boardlift_transform.measure_rounding import Original, allow_rounding
from boardlift_transform.prove import open_original


def nearly_equal() -> onnx.ModelProto:
    """`(x @ w + 1000) - 1000`, times 1e-2: what is left has the rounding of 1000."""
    b = GraphBuilder(13)
    t = b.node("MatMul", [b.input("x", [1, 8]), b.weight(8, 4, scale=0.1)])
    t = b.node("Sub", [b.node("Add", [t, b.constant(np.float32(1000))]), b.constant(np.float32(1000))])
    b.node("Mul", [t, b.constant(np.float32(1e-2))], "y")
    b.output("y", [1, 4])
    return b.model()


def highest() -> onnx.ModelProto:
    """The index of the highest of eight numbers that are all nearly 1000."""
    b = GraphBuilder(13)
    t = b.node("MatMul", [b.input("x", [1, 8]), b.weight(8, 8, scale=1e-5)])
    b.node("ArgMax", [b.node("Add", [t, b.constant(np.full(8, 1000, np.float32))])], "y", axis=1)
    b.output("y", [1, 1], onnx.TensorProto.INT64)
    return b.model()


def judged(model: onnx.ModelProto, error: float) -> tuple[bool, list[str]]:
    """Whether outputs that are off by so much pass, and the findings."""
    rng = np.random.default_rng(1)
    feeds = [{"x": rng.standard_normal((1, 8)).astype(np.float32)} for _ in range(16)]
    session = open_original(model, ["y"])
    want = [session.run(feed, ["y"]) for feed in feeds]
    shift = int(error) if want[0]["y"].dtype == np.int64 else np.float32(error)
    made = [{"y": o["y"] + (shift if k % 2 == 0 else 0)} for k, o in enumerate(want)]
    compared = compare_results(want, made, 5e-5)
    assert not compared[0].passed
    found, findings = allow_rounding(compared, Original(model, open_original, feeds, want), made)
    return found[0].passed, [f.code for f in findings]


@pytest.mark.parametrize(("error", "passed"), [(1e-6, True), (1e-4, False), (np.nan, False)])
def test_an_output_may_move_as_much_as_the_models_own_rounding_moves_it(error: float, passed: bool) -> None:
    assert judged(nearly_equal(), error) == (passed, ["ROUNDING_AMPLIFIED"] if passed else [])


def test_indices_may_change_where_ties_are_broken_by_rounding_only() -> None:
    assert judged(highest(), 1) == (True, ["ROUNDING_AMPLIFIED"])
    clear = highest()
    clear.graph.initializer[-1].CopyFrom(
        onnx.numpy_helper.from_array(np.zeros(8, np.float32), clear.graph.initializer[-1].name)
    )
    assert judged(clear, 1) == (False, [])


def test_one_element_that_rounding_decides_excuses_no_other() -> None:
    b = GraphBuilder(13)
    bias = np.full(8, 5, np.float32)
    bias[0] = 1e3  # 1000 plus some 1e-5 against 1000: the last place decides
    x = b.node("Add", [b.node("Mul", [b.input("x", [1, 8]), b.constant(np.float32(1e-5))]), b.constant(bias)])
    level = np.array([1e3] + [0.0] * 7, np.float32)
    b.node("Cast", [b.node("Greater", [x, b.constant(level)])], "y", to=onnx.TensorProto.FLOAT)
    b.output("y", [1, 8])
    model, rng = b.model(), np.random.default_rng(0)
    feeds = [{"x": rng.standard_normal((1, 8)).astype(np.float32)} for _ in range(16)]
    want = [open_original(model, ["y"]).run(feed, ["y"]) for feed in feeds]
    for count, passed in ((1, True), (8, False)):
        made = [{"y": np.abs(o["y"] - (np.arange(8) < count).astype(np.float32))} for o in want]
        original = Original(model, open_original, feeds, want)
        found, _ = allow_rounding(compare_results(want, made, 5e-5), original, made)
        assert found[0].passed is passed


def test_a_size_keeps_its_last_place() -> None:
    b = GraphBuilder(13)
    t = b.node("Resize", [b.input("x", [1, 1, 4, 2]), "", b.constant(np.array([1, 1, 2, 2], np.float32))])
    b.node("Sub", [b.node("Add", [t, b.constant(np.float32(1000))]), b.constant(np.float32(1000))], "y")
    b.output("y", [1, 1, 8, 4])
    model, feed = b.model(), {"x": np.random.default_rng(0).standard_normal((1, 1, 4, 2)).astype(np.float32)}
    want = [open_original(model, ["y"]).run(feed, ["y"])]
    made = [{"y": want[0]["y"] + np.float32(1e-4)}]
    found, _ = allow_rounding(compare_results(want, made, 5e-5), Original(model, open_original, [feed], want), made)
    assert found[0].passed


def test_a_transform_of_such_a_model_passes_with_a_note() -> None:
    result = transform(nearly_equal(), samples={"x": np.random.default_rng(0).standard_normal((32, 1, 8))})
    assert result.proof.passed
