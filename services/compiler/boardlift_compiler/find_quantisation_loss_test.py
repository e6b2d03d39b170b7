import pytest

from boardlift_compiler.find_quantisation_loss import find_quantisation_loss
from boardlift_compiler.parse_reports import NodeQuantization
from boardlift_compiler.parse_tables import OutputRow


def node(kind: str, inputs: tuple[str, ...], output: str, cosine: float | None) -> NodeQuantization:
    return NodeQuantization(kind, inputs, (output,), (), cosine)


CHAIN = {
    "conv": node("Conv", ("x", "w"), "a", 0.999),
    "div": node("Div", ("a", "s"), "b", 0.95),
    "shape": node("Reshape", ("b",), "c", None),
    "head": node("Conv", ("c", "v"), "y", 0.94),
    "other": node("Conv", ("a", "u"), "z", 0.90),
}


def row(output: str, cosine: float) -> OutputRow:
    return OutputRow(output, cosine, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("output", "cosine", "subject"), [("y", 0.94, "div"), ("z", 0.90, "other"), ("renamed", 0.9, "other")]
)
def test_the_largest_fall_in_front_of_a_low_output_is_named(output: str, cosine: float, subject: str) -> None:
    (found,) = find_quantisation_loss([row(output, cosine)], CHAIN)
    assert (found.code, found.subject, found.severity) == ("QUANTISATION_LOSS", subject, "warning")
    assert f"{cosine:.4f}" in found.message and CHAIN[subject].type in found.message


def test_nothing_is_said_of_good_outputs_and_of_figures_that_are_none() -> None:
    assert find_quantisation_loss([row("y", 0.991)], CHAIN) == []
    assert find_quantisation_loss([row("y", float("nan"))], CHAIN) == []
    assert find_quantisation_loss([row("y", 0.5)], {"a": node("Conv", ("x",), "y", None)}) == []
