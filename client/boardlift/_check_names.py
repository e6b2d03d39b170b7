"""What a job names of its model, held against the model's own names before anything runs: a typo costs no build."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from boardlift.errors import InvalidInputError
from boardlift.models import Gate


def check_input_names(named: Iterable[str], inputs: Sequence[str]) -> None:
    """Refuse names that no input of the model has; names that a transform makes of them (`obs` -> `obs_4d`) are good.

    Args:
        named: Names that a request uses.
        inputs: The model's own; empty when they are not known, and nothing is refused then.

    Raises:
        InvalidInputError: There is one (`INPUT_NOT_FOUND`).
    """
    _check(named, inputs, "input", "INPUT_NOT_FOUND", "The model has no input named {}.")


def check_gate_outputs(gates: Iterable[Gate], outputs: Sequence[str]) -> None:
    """Refuse gates on outputs that the compiled model will not have: nothing could ever decide them.

    Args:
        gates: Gates of a job.
        outputs: Outputs that are kept; empty when they are not known, and nothing is refused then.

    Raises:
        InvalidInputError: There is one (`OUTPUT_NOT_FOUND`).
    """
    named = (gate.output for gate in gates if gate.output)
    _check(named, outputs, "output", "OUTPUT_NOT_FOUND", "A gate names the output {}, which is not among those kept.")


def _check(named: Iterable[str], known: Sequence[str], kind: str, reason: str, text: str) -> None:
    for name in named:
        if known and not any(name == own or name.startswith(f"{own}_") for own in known):
            near = difflib.get_close_matches(name, known, n=1)
            say = f"Did you mean {near[0]}? " if near else ""
            raise InvalidInputError(
                text.format(name),
                reason=reason,
                remedy=f"{say}The {kind}s are {', '.join(known)}.",
                metadata={kind: name},
            )
