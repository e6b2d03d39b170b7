"""Masks of attention that are computed, through the real tool: with and without the passes that make them small."""

import re
from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.equivalence import Session

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]

TOKENS, HEADS, DEPTH = 16, 2, 16


def encoder(indexed: bool, depth: float) -> onnx.ModelProto:
    """One attention over `[1,16,32]` with a mask of int64 `[1,16]`, as exporters write that of BERT."""
    b, width = GraphBuilder(17, seed=2), HEADS * DEPTH
    x, tokens = b.input("x", [1, TOKENS, width]), b.input("mask", [1, TOKENS], onnx.TensorProto.INT64)
    keep = b.node("Cast", [tokens], to=onnx.TensorProto.BOOL)
    if indexed:
        flat = b.node("Reshape", [keep, b.constant([TOKENS, 1])])
        keep = b.node("Gather", [flat, b.constant(np.arange(TOKENS).reshape(1, 1, 1, -1))], axis=0)
    row = b.node("Reshape", [keep, b.constant([1, 1, 1, TOKENS])])
    if indexed:
        row = b.node("And", [row, b.constant(np.ones((1, 1, TOKENS, 1), bool))])
    mask = b.node("Where", [row, b.constant(np.float32(0)), b.constant(np.float32(-depth))])
    heads = b.constant([1, TOKENS, HEADS, DEPTH])
    q, k, v = (
        b.node("Transpose", [b.node("Reshape", [b.node("MatMul", [x, b.weight(width, width)]), heads])], perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = b.node("Add", [b.node("MatMul", [q, k]), mask])
    t = b.node("Transpose", [b.node("MatMul", [b.node("Softmax", [scores], axis=-1), v])], perm=[0, 2, 1, 3])
    b.node("MatMul", [b.node("Reshape", [t, b.constant([1, TOKENS, width])]), b.weight(width, width)], "y")
    b.output("y", [1, TOKENS, width])
    return b.model()


def samples() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    shown = rng.integers(TOKENS // 2, TOKENS, (8, 1, 1))
    mask = (np.arange(TOKENS) < shown).astype(np.int64)
    return {"x": rng.standard_normal((8, 1, TOKENS, HEADS * DEPTH)).astype(np.float32), "mask": mask}


def built(tool: Any, model: onnx.ModelProto, skip: list[str]) -> tuple[Any, float, float]:
    """The run of the tool, its estimate in us, and the signal to noise in dB of the first sample in int16."""
    fed = samples()
    made = transform(model, precision="int16", skip_passes=skip, samples=fed).model
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in made.graph.input}
    given = {f"{n}_4d": a.reshape(8, *shapes[f"{n}_4d"][1:]).astype(np.float32) for n, a in fed.items()}
    run = tool.compile(made, given, int16=True, level="O1")
    if run.exit_code:
        return run, 0.0, 0.0
    got, _ = tool.execute(run, {n: a[:1] for n, a in given.items()})
    want = Session(model.SerializeToString()).run({n: a[0] for n, a in fed.items()})["y"].ravel()
    noise = np.linalg.norm(got["y"].ravel() - want)
    took = sum(float(t) for t in re.findall(r"latency = ([\d.]+) us", run.log))
    return run, took, float(20 * np.log10(np.linalg.norm(want) / noise))


def test_a_deep_computed_mask_drowns_the_scores_only_before_the_pass(tool: Any) -> None:
    _, _, before = built(tool, encoder(False, 1e4), ["soften-masks"])
    _, _, after = built(tool, encoder(False, 1e4), [])
    assert after > before + 10 and after > 30, (before, after)


def test_a_mask_read_by_index_is_refused_only_before_the_pass(tool: Any) -> None:
    bools = ["simplify-masks", "normalize-details"]
    refused, _, _ = built(tool, encoder(True, 1e4), bools)
    assert refused.exit_code and "Gatherinput currently only support" in refused.log, refused.log[-500:]
    run, _, after = built(tool, encoder(True, 1e4), [])
    assert run.exit_code == 0 and after > 30
