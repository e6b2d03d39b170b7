import pytest

from boardlift_compiler.find_parting import NodeGap, OutputGap, find_parting

CHAIN = [
    NodeGap("conv", "Conv", ("x", "w"), "a", 40.0, 70.0),
    NodeGap("clip", "Clip", ("a",), "b", 39.0, None),
    NodeGap("mean", "ReduceMean", ("b",), "c", 38.0, 2.0),
    NodeGap("sub", "Sub", ("b", "c"), "d", 37.0, 11.0),
    NodeGap("other", "Conv", ("a", "v"), "z", 12.0, -20.0),
]


def gap(calibrated: float | None, quantized: float | None, output: str = "y", source: str = "d") -> OutputGap:
    return OutputGap(output, source, calibrated, quantized)


def test_integers_that_part_are_an_error_at_the_node_of_the_largest_fall_in_front_of_the_output() -> None:
    (found,) = find_parting([gap(37.0, 11.0)], CHAIN)
    assert (found.code, found.severity, found.subject) == ("INTEGERS_PART", "error", "mean")
    assert "ReduceMean, behind clip" in found.message and "from 60 to 2 dB" in found.message
    assert "11.0 dB" in found.message and "37.0 dB" in found.message


def test_an_output_that_still_has_its_signal_is_a_warning() -> None:
    (found,) = find_parting([gap(49.0, 23.7)], CHAIN)
    assert (found.code, found.severity, found.subject) == ("INTEGERS_PART", "warning", "mean")


@pytest.mark.parametrize(("sqrt_db", "severity"), [(31.0, "warning"), (16.4, "error")])
def test_a_coarse_table_is_no_wrong_operator(sqrt_db: float, severity: str) -> None:
    nodes = [
        NodeGap("conv", "Conv", ("x", "w"), "a", 60.0, 60.0),
        NodeGap("root", "Sqrt", ("a",), "b", 50.0, sqrt_db),
        NodeGap("head", "Conv", ("b", "v"), "c", 27.0, sqrt_db - 9.0),
    ]
    (found,) = find_parting([gap(27.0, 11.6, source="c")], nodes)
    assert (found.code, found.severity, found.subject) == ("INTEGERS_PART", severity, "root")


@pytest.mark.parametrize(
    ("calibrated", "quantized"), [(37.0, 31.5), (25.0, 18.5), (60.0, 30.5), (None, 3.0), (30.0, None)]
)
def test_near_outputs_and_roundings_of_one_size_are_fine(calibrated: float | None, quantized: float | None) -> None:
    assert find_parting([gap(calibrated, quantized)], CHAIN) == []


def test_loss_in_the_calibrated_model_is_a_warning_once() -> None:
    (found,) = find_parting([gap(12.0, 11.0, "z", "z")], CHAIN)
    assert (found.code, found.severity, found.subject) == ("QUANTISATION_LOSS", "warning", "other")
    both = find_parting([gap(12.0, 11.0, "z", "z"), gap(13.0, 12.0, "again", "z")], CHAIN)
    assert [f.subject for f in both] == ["other"]


def test_without_nodes_the_output_is_named() -> None:
    (found,) = find_parting([gap(40.0, 1.0)], [])
    assert (found.code, found.subject) == ("INTEGERS_PART", "y")
