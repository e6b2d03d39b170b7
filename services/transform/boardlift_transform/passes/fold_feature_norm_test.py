import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def statistics(b: GraphBuilder, channels: int) -> list[str]:
    spread = b.constant(b.rng.uniform(0.5, 2, channels).astype(np.float32))
    return [b.weight(channels, scale=1), b.weight(channels, scale=1), b.weight(channels, scale=1), spread]


def normalised(*moves: list[int], between: str = "", read_twice: bool = False) -> PassRun:
    """Tokens `[2,5,6]` times a matrix, moved, normalised over 8 features and moved back."""
    b = GraphBuilder(13)
    t = product = b.node("MatMul", [b.input("x", [2, 5, 6]), b.weight(6, 8)])
    if between:
        t = b.node(between, [t])
    for dims in moves:
        t = b.node("Reshape", [t, b.constant(dims)])
    t = b.node("BatchNormalization", [t, *statistics(b, 8)], epsilon=1e-3)
    t = b.node("Reshape", [t, b.constant([2, 5, 8])])
    b.node("Add", [t, product] if read_twice else [t, b.weight(8)], "y")
    b.output("y", [2, 5, 8])
    return run_one_pass(b.model(), "fold-feature-norm")


@pytest.mark.parametrize("moves", [[[10, 8]], [[5, 2, 8], [10, 8]]])
def test_the_normalisation_of_tokens_is_part_of_their_product(moves: list[list[int]]) -> None:
    run = normalised(*moves)
    assert run.operators == ["MatMul", "Add", *["Reshape"] * (len(moves) + 1), "Add"]
    assert run.max_rel < 1e-6


@pytest.mark.parametrize("between, read_twice", [("Relu", False), ("", True)])
def test_what_the_product_cannot_take_is_a_product_and_a_sum(between: str, read_twice: bool) -> None:
    run = normalised([10, 8], between=between, read_twice=read_twice)
    assert "BatchNormalization" not in run.operators and "Mul" in run.operators
    assert run.max_rel < 1e-6


def test_rows_that_cut_the_features_are_not_columns_of_the_matrix() -> None:
    b = GraphBuilder(13)
    t = b.node("MatMul", [b.input("x", [5, 4, 6]), b.weight(6, 8)])
    t = b.node("Reshape", [t, b.constant([20 * 2, 4])])
    b.node("BatchNormalization", [t, *statistics(b, 4)], "y")
    b.output("y", [40, 4])
    run = run_one_pass(b.model(), "fold-feature-norm")
    assert run.operators == ["MatMul", "Reshape", "Mul", "Add"] and run.max_rel < 1e-6


def test_a_signal_is_normalised_per_channel() -> None:
    b = GraphBuilder(13)
    b.node("BatchNormalization", [b.input("x", [2, 3, 7]), *statistics(b, 3)], "y")
    b.output("y", [2, 3, 7])
    run = run_one_pass(b.model(), "fold-feature-norm")
    assert run.operators == ["Mul", "Add"] and run.max_rel < 1e-6


def test_maps_stay() -> None:
    b = GraphBuilder(13)
    b.node("BatchNormalization", [b.input("x", [2, 3, 7, 7]), *statistics(b, 3)], "y")
    b.output("y", [2, 3, 7, 7])
    assert not run_one_pass(b.model(), "fold-feature-norm").result.applied
