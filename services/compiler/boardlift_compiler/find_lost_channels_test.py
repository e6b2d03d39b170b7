"""The detector whose boxes hide its scores, and outputs that are fine."""

import numpy as np

from boardlift_compiler.compare_outputs import compare_output
from boardlift_compiler.find_lost_channels import describe_lost_channels, lost_channels

RNG = np.random.default_rng(5)


def in_int8(values):
    step = np.abs(values).max() / 127
    return np.rint(values / step) * step


def detector():
    """Boxes of 0 to 640 and scores of 0 to 1 in one output, `[8, 84, 50]`."""
    return np.concatenate([RNG.uniform(0, 640, (8, 4, 50)), RNG.uniform(0, 1, (8, 80, 50))], axis=1)


def test_scores_below_one_step_are_named_although_the_cosine_is_fine():
    reference = detector()
    got = in_int8(reference)
    assert compare_output("y", got, reference).cosine > 0.999
    assert lost_channels(got, reference) == (1, list(range(4, 84)), 84)
    (finding,) = describe_lost_channels("y", got, reference)
    assert (finding.code, finding.severity, finding.subject) == ("OUTPUT_CHANNELS_LOST", "warning", "y")
    assert "80 of 84 channels along axis 1" in finding.message


def test_outputs_of_one_range_constants_and_single_numbers_are_fine():
    reference = RNG.normal(size=(8, 12))
    assert describe_lost_channels("y", in_int8(reference), reference) == []
    constant = np.zeros((8, 12))
    assert describe_lost_channels("y", constant, constant) == []
    assert describe_lost_channels("y", constant[:1, :1], constant[:1, :1]) == []
    assert describe_lost_channels("y", detector()[:1], detector()[:1]) == []


def test_channels_of_integers_and_of_truth_values_count_too():
    reference = np.array([[-128, 1], [127, 1]], np.int8)
    assert lost_channels(np.zeros_like(reference), reference) == (1, [0], 1)
    truth = np.array([[True, False], [False, False]])
    (finding,) = describe_lost_channels("y", np.ones_like(truth), truth)
    assert "1 of 1 channels" in finding.message
