"""Both branches of every If that became a Where, on the samples: taken at all, and finite where they are not taken.

The model computes both branches on every input. What no sample takes was neither proven nor will it be calibrated; and
a branch that is no number where it is not taken spoils the ranges of calibration, and the sum of products that the tool
makes of a Where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from boardlift_transform.check_result import Finding
from boardlift_transform.edit_graph import Array
from boardlift_transform.load_model import LoadedModel
from boardlift_transform.passes.if_to_where import BRANCH, CONDITION, PASS
from boardlift_transform.plan import PlannedPass
from boardlift_transform.prove import open_original
from boardlift_transform.refusal import Refusal
from boardlift_transform.runner import run_plan

_SIDES = ("then", "else")
_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16})


@dataclass(frozen=True)
class _Watched:
    """What is looked at in the model right after the conversion."""

    conditions: Mapping[str, str]
    """Value name of the condition by name of the If."""
    parents: Mapping[str, tuple[tuple[str, str], ...]]
    """Branches that an If stood in, as (side, If)."""
    values: Mapping[str, tuple[tuple[str, str], ...]]
    """Branches that a float value stood in, by its name."""


def check_branches(
    loaded: LoadedModel, steps: Sequence[PlannedPass], feeds: Sequence[Mapping[str, Array]], is_random: bool
) -> list[Finding]:
    """A finding per side that no sample takes; nothing when the plan converted no If.

    Args:
        loaded: The user's model.
        steps: The plan.
        feeds: Samples of the user's inputs.
        is_random: True when they are random.

    Raises:
        Refusal: BRANCH_NOT_FINITE, with node and sample.
    """
    last = max((i for i, step in enumerate(steps) if step.id == PASS.id), default=-1)
    model = loaded.to_ir()
    run_plan(model, steps[: last + 1])
    watched = _watch(model.graph)
    if not watched.conditions:
        return []
    session = open_original(ir.to_proto(model), [*watched.conditions.values(), *watched.values])
    taken: set[tuple[str, str]] = set()
    for index, feed in enumerate(feeds):
        results = session.run(feed)
        holds = {label: bool(results[name].reshape(-1)[0]) for label, name in watched.conditions.items()}
        for label, parents in watched.parents.items():
            if _runs(parents, holds):
                taken.add((_SIDES[not holds[label]], label))
        _check_finite(watched, results, holds, index)
    drawn = f"{len(feeds)} {'random inputs' if is_random else 'samples'}"
    return [f for side in _SIDES for f in _not_taken(side, watched, taken, drawn)]


def _watch(graph: ir.Graph) -> _Watched:
    conditions, parents, values = dict[str, str](), {}, {}
    for node in graph:
        branches = tuple(_branch(line) for line in node.metadata_props.get(BRANCH, "").splitlines())
        label = node.metadata_props.get(CONDITION)
        if label is not None:
            conditions[label], parents[label] = node.outputs[0].name or "", branches
        if branches:
            values.update({o.name: branches for o in node.outputs if o.name and o.dtype in _FLOATS})
    return _Watched(conditions, parents, values)


def _branch(line: str) -> tuple[str, str]:
    side, _, label = line.partition(" ")
    return side, label


def _runs(branches: Sequence[tuple[str, str]], holds: Mapping[str, bool]) -> bool:
    """Whether the original computes what stands in these branches."""
    return all(holds[label] == (side == "then") for side, label in branches if label in holds)


def _check_finite(watched: _Watched, results: Mapping[str, Array], holds: Mapping[str, bool], sample: int) -> None:
    for name, branches in watched.values.items():
        if _runs(branches, holds) or np.all(np.isfinite(results[name])):
            continue
        side, label = branches[0]
        raise Refusal(
            "BRANCH_NOT_FINITE",
            f"{name}, in the {side} branch of If {label}, holds NaN or infinity on sample {sample}, which does not take"
            " that branch; the result computes both branches every time",
            remedy="keep its input in range, for example Max(x, 1e-6) in front of Log, Sqrt and Div",
            metadata={"node": label, "value": name, "sample": sample},
        )


def _not_taken(side: str, watched: _Watched, taken: set[tuple[str, str]], drawn: str) -> list[Finding]:
    missing = [label for label in watched.conditions if (side, label) not in taken]
    if not missing:
        return []
    listed = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
    text = f"none of {drawn} takes the {side} branch of {listed}: what it computes there is not proven"
    return [Finding("BRANCH_NOT_TAKEN", text, missing[0], "warning", "prove and calibrate with samples that take it")]
