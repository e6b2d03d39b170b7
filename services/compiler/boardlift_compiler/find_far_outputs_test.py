import math

import numpy as np
import pytest

from boardlift_compiler.find_far_outputs import centred_db, describe_constant_output, describe_far_output

RNG = np.random.default_rng(0)
SMALL = RNG.normal(0, 0.01, (4, 20)).astype(np.float32)


def test_a_mean_hides_a_loss_from_the_cosine_and_it_is_told() -> None:
    (found,) = describe_far_output("y", np.full_like(SMALL, 3.0), SMALL + np.float32(3.0))
    assert (found.code, found.severity, found.subject) == ("OUTPUT_FAR_FROM_FLOAT", "warning", "y")
    assert "cosine 1.0000" in found.message and "around 3" in found.message


@pytest.mark.parametrize(("noise", "told"), [(0.12, False), (0.16, True)])
def test_the_mark_is_17_decibels(noise: float, told: bool) -> None:
    signs = np.where(RNG.random(SMALL.shape) > 0.5, 1, -1)
    got = SMALL + noise * SMALL.std() * signs
    assert bool(describe_far_output("y", got, SMALL)) == told


def test_integers_constants_and_what_is_no_number_are_left_to_others() -> None:
    assert describe_far_output("y", np.ones((2, 3), np.int64), np.zeros((2, 3), np.int64)) == []
    assert describe_far_output("y", np.zeros((2, 3)), np.ones((2, 3))) == []
    assert describe_far_output("y", np.full((2, 3), np.nan), RNG.normal(size=(2, 3))) == []
    assert describe_far_output("y", np.zeros((2, 2)), np.ones((2, 3))) == []
    assert centred_db(SMALL, SMALL) == math.inf


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (np.zeros((8, 1, 4)), "(0)"),
        (np.tile(np.arange(6.0), (8, 1)), "6 numbers from 0 to 5"),
        (np.full((8, 2), 7, np.int64), "(7)"),
        (np.zeros((1, 4)), ""),
        (SMALL, ""),
        (np.full((8, 2), np.nan), ""),
    ],
)
def test_an_output_that_never_changes_is_told(reference: np.ndarray, said: str) -> None:
    found = describe_constant_output("y", reference)
    assert [f.code for f in found] == (["OUTPUT_CONSTANT"] if said else [])
    assert all(said in f.message and f.severity == "warning" for f in found)
