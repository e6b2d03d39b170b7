from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import PassRun, run_one_pass

CONTRIB = "com.microsoft"
TOKENS, WIDTH, HEADS = 5, 12, 3


def _run(b: GraphBuilder, samples: list[dict[str, Any]] | None = None) -> PassRun:
    b.domains = (CONTRIB,)
    return run_one_pass(b.model(), "replace-foreign", samples=samples)


def _fed(masks: bool, *names: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    feeds = [{n: rng.standard_normal((2, TOKENS, WIDTH)).astype(np.float32) for n in names} for _ in range(3)]
    for k, feed in enumerate(feeds):
        if masks:
            feed["mask"] = (np.arange(TOKENS) <= np.asarray([[k], [k + 1]])).astype(np.int32)
    return feeds


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}, {"unidirectional": 1}, {"mask_filter_value": -3e38}])
def test_attention_with_a_joint_projection(masked: bool, attributes: dict[str, Any]) -> None:
    b = GraphBuilder(17)
    inputs = [b.input("x", [2, TOKENS, WIDTH]), b.weight(WIDTH, 3 * WIDTH), b.weight(3 * WIDTH)]
    if masked:
        inputs.append(b.input("mask", [2, TOKENS], onnx.TensorProto.INT32))
    b.node("Attention", inputs, "y", domain=CONTRIB, num_heads=HEADS, **attributes)
    b.output("y", [2, TOKENS, WIDTH])
    run = _run(b, _fed(masked, "x"))
    assert "Attention" not in run.operators and run.max_rel < 1e-5


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_three_inputs(masked: bool, bias: bool) -> None:
    b = GraphBuilder(17)
    inputs = [b.input(n, [2, TOKENS, WIDTH]) for n in ("q", "k", "v")]
    inputs.append(b.weight(3 * WIDTH) if bias else "")
    inputs.append(b.input("mask", [2, TOKENS], onnx.TensorProto.INT32) if masked else "")
    inputs.append(b.weight(1, HEADS, TOKENS, TOKENS))
    b.node("MultiHeadAttention", inputs, "y", domain=CONTRIB, num_heads=HEADS)
    b.output("y", [2, TOKENS, WIDTH])
    run = _run(b, _fed(masked, "q", "k", "v"))
    assert run.operators.count("MatMul") == 2 and run.max_rel < 1e-5


def test_a_mask_of_lengths() -> None:
    b = GraphBuilder(17)
    inputs = [b.input("x", [2, TOKENS, WIDTH]), b.weight(WIDTH, 3 * WIDTH), b.weight(3 * WIDTH)]
    inputs.append(b.input("mask", [2], onnx.TensorProto.INT32))
    b.node("Attention", inputs, "y", domain=CONTRIB, num_heads=HEADS)
    b.output("y", [2, TOKENS, WIDTH])
    feeds = [{**feed, "mask": np.asarray([k + 1, TOKENS], np.int32)} for k, feed in enumerate(_fed(False, "x"))]
    assert _run(b, feeds).max_rel < 1e-5


@pytest.mark.parametrize("opset", [11, 17])
def test_the_length_of_a_mask(opset: int) -> None:
    b = GraphBuilder(opset)
    names = [b.input("ids", [2, TOKENS], onnx.TensorProto.INT32), "", b.weight(20, WIDTH), b.weight(9, WIDTH), ""]
    names += [b.weight(WIDTH, scale=1), b.weight(WIDTH), b.input("mask", [2, TOKENS], onnx.TensorProto.INT32)]
    names.append(b.constant(np.arange(TOKENS, dtype=np.int32)[None, ::-1].copy().repeat(2, 0)))
    b.node("EmbedLayerNormalization", names, "y", outputs=1, domain=CONTRIB)
    b.nodes[-1].output.append("lengths")
    b.output("y", [2, TOKENS, WIDTH])
    b.output("lengths", [2], onnx.TensorProto.INT32)
    feed = {
        "ids": np.arange(10, dtype=np.int32).reshape(2, 5),
        "mask": np.asarray([[1] * 5, [1, 1, 0, 0, 0]], np.int32),
    }
    run = _run(b, [feed])
    assert "ReduceSum" in run.operators and run.max_rel < 1e-5


@pytest.mark.parametrize("segments", [False, True])
def test_embedding(segments: bool) -> None:
    b = GraphBuilder(17)
    names = [b.input("ids", [1, TOKENS], onnx.TensorProto.INT32)]
    names.append(b.input("kinds", [1, TOKENS], onnx.TensorProto.INT32) if segments else "")
    names += [b.weight(20, WIDTH), b.weight(9, WIDTH), b.weight(2, WIDTH) if segments else ""]
    names += [b.weight(WIDTH, scale=1), b.weight(WIDTH)]
    b.node("EmbedLayerNormalization", names, "y", outputs=1, domain=CONTRIB, epsilon=1e-5)
    b.nodes[-1].output.append("lengths")
    b.output("y", [1, TOKENS, WIDTH])
    rng = np.random.default_rng(0)
    feeds = [{"ids": rng.integers(0, 20, (1, TOKENS)).astype(np.int32)} for _ in range(3)]
    for feed in feeds if segments else ():
        feed["kinds"] = rng.integers(0, 2, (1, TOKENS)).astype(np.int32)
    run = _run(b, feeds)
    assert "EmbedLayerNormalization" not in run.operators and run.max_rel < 1e-5


def test_shapes_that_the_file_does_not_tell_are_inferred() -> None:
    b = GraphBuilder(17)
    t = b.node("Relu", [b.node("MatMul", [b.input("x", [2, TOKENS, 4]), b.weight(4, WIDTH)])])
    lengths = b.input("mask", [2], onnx.TensorProto.INT32)
    for _ in range(2):
        inputs = [t, b.weight(WIDTH, 3 * WIDTH), b.weight(3 * WIDTH), lengths]
        t = b.node("Attention", inputs, domain=CONTRIB, num_heads=HEADS)
        t = b.node("Tanh", [b.node("MatMul", [t, b.weight(WIDTH, WIDTH)])])
    b.node("Relu", [t], "y")
    b.output("y", [2, TOKENS, WIDTH])
    rng = np.random.default_rng(0)
    feed = {"x": rng.standard_normal((2, TOKENS, 4)).astype(np.float32), "mask": np.asarray([2, 4], np.int32)}
    assert _run(b, [feed]).max_rel < 1e-5


def test_keys_from_before_are_refused_by_node() -> None:
    b = GraphBuilder(17)
    inputs = [b.input(n, [1, TOKENS, WIDTH]) for n in ("q", "k", "v")] + ["", "", ""]
    inputs += [b.input(n, [1, HEADS, 2, WIDTH // HEADS]) for n in ("past_k", "past_v")]
    b.node("MultiHeadAttention", inputs, "y", outputs=1, domain=CONTRIB, num_heads=HEADS)
    b.nodes[-1].output.extend(["now_k", "now_v"])
    b.output("y", [1, TOKENS, WIDTH])
    with pytest.raises(Refusal) as caught:
        _run(b)
    assert caught.value.reason == "FOREIGN_DOMAIN" and "from before" in caught.value.message


def test_halves_stay_halves() -> None:
    b = GraphBuilder(17)
    weights = [b.rng.standard_normal(s).astype(np.float16) for s in ((WIDTH, 3 * WIDTH), (3 * WIDTH,))]
    inputs = [b.input("x", [1, TOKENS, WIDTH], onnx.TensorProto.FLOAT16), *(b.constant(w) for w in weights)]
    inputs.append(b.input("mask", [1, TOKENS], onnx.TensorProto.INT32))
    b.node("Attention", inputs, "y", domain=CONTRIB, num_heads=HEADS, mask_filter_value=-3e38)
    b.output("y", [1, TOKENS, WIDTH], onnx.TensorProto.FLOAT16)
    feed = {"x": b.rng.standard_normal((1, TOKENS, WIDTH)).astype(np.float16)}
    run = _run(b, [{**feed, "mask": np.asarray([[1, 1, 1, 0, 0]], np.int32)}])
    assert all(w.data_type != onnx.TensorProto.FLOAT for w in run.model.graph.initializer) and run.max_rel < 0.01
