"""Float, quantised model, board on the same samples -> the first stage whose answer leaves the one before. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from boardlift_board_agent.compare_outputs import OutputDifference

CLOSE = 1e-6
"""Relative to the largest value, differences below this are rounding of CPU operators, not another answer."""


@dataclass(frozen=True)
class Divergence:
    """Where the answers part."""

    stage: str
    """`none`, `quantiser`, `board` or `unknown`."""
    code: str
    """Stable, UPPER_SNAKE."""
    severity: str
    """`note`, `warning` or `error`."""
    message: str
    subject: str
    """Output."""
    remedy: str


def locate_divergence(
    board_vs_float: list[OutputDifference],
    board_vs_quantized: list[OutputDifference],
    plain_copies: tuple[str, ...],
    cosine_floor: float = 0.98,
) -> list[Divergence]:
    """Names the stage at fault, per output.

    Args:
        board_vs_float: board against the user's float model.
        board_vs_quantized: board against the quantised model; empty when that was not run.
        plain_copies: outputs whose memory was written without the stride.
        cosine_floor: below this the quantised model itself counts as distorted.
    """
    found = [_plain(name) for name in plain_copies]
    quantized = {d.output: d for d in board_vs_quantized}
    for difference in board_vs_float:
        twin = quantized.get(difference.output)
        if twin is None:
            continue
        if _same(twin):
            if not difference.figures["cosine"] >= cosine_floor:
                found.append(_quantiser(difference))
        elif difference.output not in plain_copies:
            found.append(_board(twin))
    return found


def _same(difference: OutputDifference) -> bool:
    return difference.bit_equal or difference.figures["cosine_min"] >= 1 - CLOSE


def _plain(output: str) -> Divergence:
    return Divergence(
        "board",
        "OUTPUT_PLAIN_COPY",
        "error",
        f"The memory of {output} was filled row after row; its stride says padded rows.",
        output,
        "Copy row by row with the tensor's stride; a plain memcpy of padded memory scrambles the values.",
    )


def _quantiser(difference: OutputDifference) -> Divergence:
    return Divergence(
        "quantiser",
        "QUANTIZED_MODEL_DISTORTED",
        "warning",
        f"Board and quantised model agree on {difference.output}; both leave the float model "
        f"(cosine {difference.figures['cosine']:.6f}).",
        difference.output,
        "Look at calibration data and precision, not at the board.",
    )


def _board(twin: OutputDifference) -> Divergence:
    far = not twin.figures["cosine"] >= 0.999
    return Divergence(
        "board",
        "BOARD_DIFFERS_FROM_QUANTIZED",
        "error" if far else "warning",
        f"The board's {twin.output} is not the quantised model's: {twin.figures['equal_share']:.1%} of the values are "
        f"equal, cosine {twin.figures['cosine']:.6f}, largest difference {twin.figures['max_abs']:.3g}.",
        twin.output,
        "Compare the compiled code with the quantised model in simulation; then look at versions and input layout.",
    )
