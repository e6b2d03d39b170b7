"""Build the specification of a job that repeats another one with something changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boardlift._requests import Model, board_selector, gate_message, model_source, parse_variant, to_ref, variant_spec
from boardlift.models import Artifact, Gate, Variant
from boardlift.v1 import job_pb2


@dataclass(frozen=True)
class Changes:
    """What is to be different; None keeps what the other job had."""

    model: Model | None = None
    """Another model."""
    data: Artifact | None = None
    """Another dataset."""
    variants: Sequence[Variant | str] | None = None
    """Other ways to compile."""
    gates: Sequence[Gate | str] | None = None
    """Other limits."""
    board: str | None = None
    """Another board id, or labels."""
    skip_board: bool | None = None
    """Leave the board out, or don't."""
    name: str | None = None
    """Another name for people."""
    command: tuple[str, ...] = ()
    """Command line that submits it; the other job's would repeat the other job."""


def changed_spec(spec: job_pb2.JobSpec, changes: Changes) -> job_pb2.JobSpec:
    """Return a copy of a specification with the changes.

    Raises:
        InvalidInputError: A change can't be used.
    """
    new = job_pb2.JobSpec()
    new.CopyFrom(spec)
    if changes.model is not None:
        new.model.CopyFrom(model_source(changes.model))
        new.model_name = changes.model.name
    if changes.data is not None:
        new.dataset.CopyFrom(to_ref(changes.data))
    if changes.variants is not None:
        parsed = [parse_variant(item) if isinstance(item, str) else item for item in changes.variants]
        del new.variants[:]
        new.variants.extend(variant_spec(variant) for variant in parsed)
    if changes.gates is not None:
        limits = [Gate.parse(item) if isinstance(item, str) else item for item in changes.gates]
        del new.gates[:]
        new.gates.extend(gate_message(gate) for gate in limits)
    if changes.board is not None:
        new.board.CopyFrom(board_selector(changes.board))
    if changes.skip_board is not None:
        new.skip_board = changes.skip_board
    if changes.name is not None:
        new.display_name = changes.name[:100]
    del new.command[:]
    new.command.extend(changes.command)
    return new
