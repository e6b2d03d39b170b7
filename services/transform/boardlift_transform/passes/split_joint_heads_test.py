from typing import Any

import numpy as np
import onnx
import pytest

from boardlift_transform import transform
from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import run_one_pass

TOKENS, HEADS, DEPTH = 5, 2, 3
WIDTH = HEADS * DEPTH


class Attention(GraphBuilder):
    """Attention of 5 tokens, 2 heads of 3, written in the ways of exporters."""

    def joint(self, x: str, form: str = "MatMul") -> str:
        """`[1,5,6]` -> `[1,5,18]`."""
        if form == "Gemm":
            t = self.node("Reshape", [x, self.constant([TOKENS, WIDTH])])
            t = self.node("Gemm", [t, self.weight(3 * WIDTH, WIDTH), self.weight(3 * WIDTH)], transB=1)
            return self.node("Reshape", [t, self.constant([1, TOKENS, 3 * WIDTH])])
        t = self.node("MatMul", [x, self.weight(WIDTH, 3 * WIDTH)])
        return self.node("Add", [self.weight(3 * WIDTH), t])

    def take(self, x: str, form: str, axis: int = 0) -> list[str]:
        """The three entries of an axis, the axis dropped."""
        if form == "Split":
            names = [f"part_{i}" for i in range(3)]
            self.node("Split", [x], "part", outputs=3, axis=axis)
            return [self.node("Squeeze", [n], axes=[axis]) for n in names]
        if form == "Slice":
            bounds = [[self.constant([v]) for v in (i, i + 1 if i < 2 else 2**62, axis)] for i in range(3)]
            return [self.node("Squeeze", [self.node("Slice", [x, *b])], axes=[axis]) for b in bounds]
        return [self.node("Gather", [x, self.constant(np.asarray(i))], axis=axis) for i in range(3)]

    def attend(self, parts: list[str], perm: list[int] | None = None) -> str:
        """Softmax(q k^T) v of `[1,2,5,3]`, heads merged to `[1,5,6]`."""
        q, k, v = (self.node("Transpose", [p], perm=perm) for p in parts) if perm else parts
        t = self.node("MatMul", [q, self.node("Transpose", [k], perm=[0, 1, 3, 2])])
        t = self.node("MatMul", [self.node("Softmax", [t], axis=3), v])
        t = self.node("Transpose", [t], perm=[0, 2, 1, 3])
        return self.node("Reshape", [t, self.constant([1, TOKENS, WIDTH])])

    def end(self, t: str) -> onnx.ModelProto:
        self.node("MatMul", [t, self.weight(WIDTH, WIDTH)], "y")
        self.output("y", [1, TOKENS, WIDTH])
        return self.model()


def vision(take: str, form: str = "MatMul") -> onnx.ModelProto:
    """timm: [B,N,3,H,D] -> [3,B,H,N,D]."""
    b = Attention(11)
    t = b.joint(b.input("x", [1, TOKENS, WIDTH]), form)
    t = b.node("Transpose", [b.node("Reshape", [t, b.constant([1, TOKENS, 3, HEADS, DEPTH])])], perm=[2, 0, 3, 1, 4])
    return b.end(b.attend(b.take(t, take)))


def interleaved() -> onnx.ModelProto:
    """BLOOM: [B,N,H,3,D], taken from axis 3."""
    b = Attention(11)
    t = b.joint(b.input("x", [1, TOKENS, WIDTH]))
    t = b.node("Reshape", [t, b.constant([1, TOKENS, HEADS, 3, DEPTH])])
    return b.end(b.attend(b.take(t, "Gather", 3), perm=[0, 2, 1, 3]))


def module() -> onnx.ModelProto:
    """nn.MultiheadAttention: [1,N,B,3,E] -> [3,N,B,E], heads as batch of three axes."""
    b = Attention(11)
    t = b.node("Transpose", [b.input("x", [1, TOKENS, WIDTH])], perm=[1, 0, 2])
    t = b.node("Reshape", [b.joint(t), b.constant([TOKENS, 1, 3, WIDTH])])
    t = b.node("Transpose", [b.node("Unsqueeze", [t], axes=[0])], perm=[3, 1, 2, 0, 4])
    parts = b.take(b.node("Squeeze", [t], axes=[3]), "Gather")
    shape = b.constant([TOKENS, HEADS, DEPTH])
    q, k, v = (b.node("Transpose", [b.node("Reshape", [p, shape])], perm=[1, 0, 2]) for p in parts)
    t = b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 2, 1])])
    t = b.node("MatMul", [b.node("Softmax", [t], axis=2), v])
    t = b.node("Reshape", [b.node("Transpose", [t], perm=[1, 0, 2]), b.constant([1, TOKENS, WIDTH])])
    return b.end(t)


CASES = {f"{take}-{form}": vision(take, form) for take in ("Gather", "Split", "Slice") for form in ("MatMul", "Gemm")}
CASES |= {"interleaved": interleaved(), "module": module()}


def widest(model: onnx.ModelProto) -> int:
    inferred = onnx.shape_inference.infer_shapes(model)
    return max(len(v.type.tensor_type.shape.dim) for v in inferred.graph.value_info)


@pytest.mark.parametrize("case", list(CASES))
def test_each_part_gets_a_projection_of_its_own(case: str) -> None:
    run = run_one_pass(CASES[case], "split-joint-heads")
    assert len(run.result.applied) == 3 and not run.result.skipped
    assert widest(run.model) <= 4
    assert not {"Gather", "Split", "Slice"} & set(run.operators)
    assert run.operators.count("MatMul") + run.operators.count("Gemm") == 6
    assert run.max_rel < 1e-6


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize(("precision", "around_softmax"), [("int8", 0), ("", 2)])  # rows-to-channels
def test_the_whole_transform_leaves_a_reshape_and_a_transpose_at_most_per_part(
    case: str, precision: str, around_softmax: int
) -> None:
    made = transform(CASES[case], precision=precision)
    assert made.proof.batch == "proven"
    assert all(c.max_rel < 5e-5 for c in made.proof.comparisons)
    moves = [n for n in made.model.graph.node if n.op_type in ("Reshape", "Transpose")]
    at_most = 5 + 2 + 2 + around_softmax  # q 2, k 1, v 2, merge 2, input and output
    assert len(moves) <= at_most, [n.name for n in moves]


def _read_by_others(b: Attention, t: str) -> None:
    b.node("Relu", [t], "side")
    b.output("side", [1, TOKENS, 3 * WIDTH])


def _computed_weights(b: Attention, x: str) -> str:
    return b.node("MatMul", [x, b.node("Relu", [b.input("w", [1, WIDTH, 3 * WIDTH])])])


@pytest.mark.parametrize("kind", ["read by others", "computed weights"])
def test_without_weights_of_its_own_a_part_is_sliced(kind: str) -> None:
    b = Attention(11)
    x = b.input("x", [1, TOKENS, WIDTH])
    t = b.joint(x) if kind == "read by others" else _computed_weights(b, x)
    if kind == "read by others":
        _read_by_others(b, t)
    t = b.node("Transpose", [b.node("Reshape", [t, b.constant([1, TOKENS, 3, HEADS, DEPTH])])], perm=[2, 0, 3, 1, 4])
    run = run_one_pass(b.end(b.attend(b.take(t, "Gather"))), "split-joint-heads")
    assert run.operators.count("Slice") == 3 and widest(run.model) <= 4
    assert run.max_rel < 1e-6


def test_interleaved_parts_of_what_others_read_stay() -> None:
    b = Attention(11)
    t = b.joint(b.input("x", [1, TOKENS, WIDTH]))
    _read_by_others(b, t)
    t = b.node("Reshape", [t, b.constant([1, TOKENS, HEADS, 3, DEPTH])])
    run = run_one_pass(b.end(b.attend(b.take(t, "Gather", 3), perm=[0, 2, 1, 3])), "split-joint-heads")
    assert not run.result.applied and len(run.result.skipped) == 3


@pytest.mark.parametrize(("shape", "taken"), [([1, TOKENS, 3, WIDTH], 2), ([1, TOKENS, 9, 2], 2)])
def test_four_axes_stay(shape: list[int], taken: Any) -> None:
    b = Attention(11)
    t = b.node("Reshape", [b.joint(b.input("x", [1, TOKENS, WIDTH])), b.constant(shape)])
    b.node("Relu", [b.node("Gather", [t, b.constant(np.asarray(1))], axis=taken)], "y")
    b.output("y")
    assert not run_one_pass(b.model(), "split-joint-heads").result.applied


@pytest.mark.parametrize("take", ["Gather", "Split"])
def test_scale_and_shift_of_one_row_become_two_projections(take: str) -> None:
    b = Attention(11)
    x, c = b.input("x", [1, 6, 7]), b.input("c", [1, 4])
    t = b.node("Reshape", [b.node("Gemm", [c, b.weight(12, 4), b.weight(12)], transB=1), b.constant([1, 2, 6, 1])])
    if take == "Split":
        b.node("Split", [t], "part", outputs=2, axis=1)
        scale, shift = (b.node("Squeeze", [f"part_{i}"], axes=[1]) for i in range(2))
    else:
        scale, shift = (b.node("Gather", [t, b.constant(np.asarray(i))], axis=1) for i in range(2))
    b.node("Add", [b.node("Mul", [scale, x]), shift], "y")
    b.output("y", [1, 6, 7])
    run = run_one_pass(b.model(), "split-joint-heads")
    assert run.operators.count("Gemm") == 2 and not {"Gather", "Split"} & set(run.operators)
    assert run.max_rel < 1e-6
