"""Where float model, quantised model and board part; and that the quantised model is not compared with itself."""

import numpy as np
import pytest

from boardlift_board_agent.compare_outputs import OutputDifference, compare_output
from boardlift_board_agent.three_way import locate_divergence

FLOAT = np.random.default_rng(2).normal(size=(3, 8))


def difference(got: np.ndarray, reference: np.ndarray) -> list[OutputDifference]:
    return [compare_output("y", got, reference)]


@pytest.mark.parametrize(
    ("board", "quantized", "plain", "codes"),
    [
        (FLOAT + 0.01, FLOAT + 0.01, (), []),
        (-FLOAT, -FLOAT, (), ["QUANTIZED_MODEL_DISTORTED"]),
        (-FLOAT, FLOAT + 0.01, (), ["BOARD_DIFFERS_FROM_QUANTIZED"]),
        (-FLOAT, FLOAT + 0.01, ("y",), ["OUTPUT_PLAIN_COPY"]),
    ],
)
def test_the_first_stage_that_leaves_the_one_before_is_named(board, quantized, plain, codes) -> None:
    found = locate_divergence(difference(board, FLOAT), difference(board, quantized), plain)
    assert [item.code for item in found] == codes


def test_the_quantised_model_in_place_of_the_code_is_no_check_of_the_code() -> None:
    same = difference(FLOAT + 0.01, FLOAT + 0.01)
    found = locate_divergence(difference(FLOAT + 0.01, FLOAT), same, (), compiled_code=False)
    assert [(item.code, item.severity) for item in found] == [("COMPILED_CODE_NOT_RUN", "warning")]
    found = locate_divergence(difference(-FLOAT, FLOAT), same, (), compiled_code=False)
    assert [item.code for item in found] == ["COMPILED_CODE_NOT_RUN", "QUANTIZED_MODEL_DISTORTED"]
    assert "Board and quantised model agree" not in found[1].message
