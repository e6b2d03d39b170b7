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
    compiled_code: bool = True,
    cosine_floor: float = 0.98,
) -> list[Divergence]:
    """Names the stage at fault, per output.

    Args:
        board_vs_float: board against the user's float model.
        board_vs_quantized: board against the quantised model; empty when that was not run.
        plain_copies: outputs whose memory was written without the stride.
        compiled_code: the outputs are those of the compiled code. False when a stand-in ran the quantised model in its
            place: then board and quantised model are one thing, and their agreement is none.
        cosine_floor: below this the quantised model itself counts as distorted.
    """
    found = [_plain(name) for name in plain_copies]
    if not compiled_code:
        found.append(_NOT_RUN)
    quantized = {d.output: d for d in board_vs_quantized}
    for difference in board_vs_float:
        twin = quantized.get(difference.output)
        if twin is None:
            continue
        if _same(twin):
            if not difference.figures["cosine"] >= cosine_floor:
                found.append(_quantiser(difference, compiled_code))
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


_NOT_RUN = Divergence(
    "unknown",
    "COMPILED_CODE_NOT_RUN",
    "warning",
    "The simulated board ran the quantised model in place of the compiled code (it does not know an operator on the "
    "CPU, or was told to): nothing here is a check of the compiled code.",
    "board",
    "Run the model on a real board; the simulation's bit check covers the code of the BPU.",
)


def _quantiser(difference: OutputDifference, compiled_code: bool) -> Divergence:
    agree = f"Board and quantised model agree on {difference.output}; both leave"
    alone = f"On {difference.output} the quantised model, which ran in place of the compiled code, leaves"
    return Divergence(
        "quantiser",
        "QUANTIZED_MODEL_DISTORTED",
        "warning",
        f"{agree if compiled_code else alone} the float model (cosine {difference.figures['cosine']:.6f}).",
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
