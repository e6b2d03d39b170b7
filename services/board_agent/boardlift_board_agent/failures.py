"""How a run of the vendor's tool ended badly -> whose fault, what to do. Pure.

A model that the runtime refuses is a result (the user's fault, never retried). A tool that dies, hangs or runs out of
room is the machinery's fault: an error, which is tried again elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from boardlift.errors import BoardliftError, DeadlineError, ExhaustedError, InternalError

from boardlift_board_agent.parse_report import Header

_MODEL_CODES = {-6000002, -6000003, -6000014}
_MEMORY_CODES = {-6000007, -6000130}
_ARGUMENT_CODES = {-6000001, -6000006, -6000129}
_LINES = 8


@dataclass(frozen=True)
class ToolRun:
    """One finished run of the tool."""

    command: str
    """Sub-command, for messages."""
    exit_code: int
    """128 + n after signal n."""
    signal: int
    timed_out: bool
    text: str
    """Everything it printed."""
    header: Header
    peak_memory_bytes: int = 0
    """Resident memory of its largest process; 0 when not taken."""


class ModelRefused(Exception):
    """The runtime refuses the model or its input: a result, the user's fault."""

    def __init__(self, code: str, message: str, remedy: str, evidence: tuple[str, ...], exit_code: int) -> None:
        """Keeps the parts of the answer.

        Args:
            code: stable, UPPER_SNAKE.
            message: one sentence.
            remedy: one thing to do.
            evidence: lines of the tool.
            exit_code: the tool's.
        """
        super().__init__(message)
        self.code, self.message, self.remedy = code, message, remedy
        self.evidence, self.exit_code = evidence, exit_code


def check_run(run: ToolRun) -> None:
    """Passes a good run.

    Raises:
        ModelRefused: the runtime says no to the model or the input.
        BoardliftError: TOOL_HANGS, TOOL_KILLED, BOARD_DISK_FULL, BOARD_MEMORY_FULL or TOOL_FAILED.
    """
    if run.exit_code == 0 and not run.timed_out and run.header.error_code is None:
        return
    refused = _refusal(run)
    if refused is not None:
        raise refused
    raise _fault(run)


def last_lines(text: str) -> tuple[str, ...]:
    """The last lines that say something."""
    lines = [line.strip()[:300] for line in text.splitlines() if line.strip()]
    return tuple(lines[-_LINES:])


def _refusal(run: ToolRun) -> ModelRefused | None:
    code = run.header.error_code
    if run.signal or run.timed_out or code is None:
        return None
    evidence = run.header.errors or last_lines(run.text)
    if re.search(r"march is \S+", run.text):
        remedy = "Compile for this board's chip (march bayes-e for the RDK X5)."
        return ModelRefused(
            "MODEL_WRONG_MARCH", "The model is built for another chip.", remedy, evidence, run.exit_code
        )
    if code in _MODEL_CODES:
        remedy = "Check that this is the compiled model and that its toolchain matches the board's runtime."
        return ModelRefused("MODEL_REFUSED", "The runtime refuses the model.", remedy, evidence, run.exit_code)
    if code in _ARGUMENT_CODES and run.command == "infer":
        remedy = "Give one sample per input in the compiled model's shape and type."
        return ModelRefused("INPUT_REFUSED", "The runtime refuses the input.", remedy, evidence, run.exit_code)
    return None


def _fault(run: ToolRun) -> BoardliftError:
    metadata = {"command": run.command, "exit_code": str(run.exit_code), "last_lines": "\n".join(last_lines(run.text))}
    if run.timed_out:
        return DeadlineError(
            f"hrt_model_exec {run.command} did not end in time and was stopped.",
            reason="TOOL_HANGS",
            remedy="Restart the board if this repeats.",
            metadata=metadata,
        )
    if re.search(r"No space left on device", run.text):
        return ExhaustedError(
            "The board's disk is full.", reason="BOARD_DISK_FULL", remedy="Free some space.", metadata=metadata
        )
    if run.header.error_code in _MEMORY_CODES or re.search(r"ion alloc failed", run.text, re.IGNORECASE):
        return ExhaustedError(
            "The board has no memory left for the model.",
            reason="BOARD_MEMORY_FULL",
            remedy="Release other models; look at /sys/kernel/debug/ion/heaps.",
            metadata=metadata,
        )
    if run.signal:
        return InternalError(
            f"hrt_model_exec {run.command} was ended by signal {run.signal}.",
            reason="TOOL_KILLED",
            remedy="Look at the board's kernel log.",
            metadata=metadata,
        )
    return InternalError(
        f"hrt_model_exec {run.command} failed with exit code {run.exit_code}.",
        reason="TOOL_FAILED",
        remedy="Look at the tool's last lines.",
        metadata=metadata,
    )
