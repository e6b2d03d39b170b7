"""The decision tree: evidence -> causes with confidence, evidence and next step, most likely first. Pure.

Order of the questions, the one an expert asks:
1. Do the versions fit?  2. Is the memory laid out as its stride says?  3. Does the user's code get what the board gets
on the same samples; if not, which known mistake gives exactly what it got?  4. Does the board get what the quantised
model gets?  5. Is the quantised model itself far from the float model; is calibration data, a layer or the version why?
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from boardlift_board_agent.compare_outputs import OutputDifference, compare_all
from boardlift_board_agent.diagnosis.calibration import judge_calibration
from boardlift_board_agent.diagnosis.evidence import Arrays, Diagnosis, Evidence
from boardlift_board_agent.diagnosis.mistakes import BY_ID, mistaken_outputs
from boardlift_board_agent.diagnosis.user_inputs import judge_user_inputs
from boardlift_board_agent.diagnosis.user_outputs import judge_user_outputs

SAME = 0.99999
"""Smallest cosine of a sample from which on two answers are the same answer."""
ALIKE = 0.01
"""Largest difference relative to the largest value that the same answer may have; a cosine is blind to a factor."""
TINY = 1e-5
"""Largest difference relative to the largest value that different CPU kernels may make."""
DISTORTED = 0.98
"""Below this cosine the quantised model itself is wrong."""
DROP = 0.01
"""Drop of a node's cosine against the node before that makes it the place of the damage."""


def diagnose(evidence: Evidence) -> list[Diagnosis]:
    """Walks the tree.

    Args:
        evidence: what is known.

    Returns:
        Causes, most likely first; exactly one `consistent` when nothing is wrong.
    """
    found = [*_versions(evidence), *_memory(evidence), *_user_code(evidence), *_board(evidence), *_model(evidence)]
    if not found:
        return [_consistent(evidence)]
    return sorted(found, key=lambda item: -item.confidence)


def closeness(left: Arrays, right: Arrays) -> float | None:
    """Smallest cosine over all outputs and samples, NaN when one is none; None when nothing can be compared."""
    differences = _compare(left, right)
    return float(np.min([d.figures["cosine_min"] for d in differences])) if differences else None


def _compare(left: Arrays, right: Arrays) -> list[OutputDifference]:
    """The samples that both have, output by output."""
    samples = min((len(a) for a in (*left.values(), *right.values())), default=0)
    return (
        compare_all({name: array[:samples] for name, array in left.items()}, dict(right), samples)[0] if right else []
    )


def _farthest(e: Evidence) -> str:
    """Where the user's outputs are farthest from the board's, for people who judge by the size of an error."""
    worst = max(_compare(e.user_outputs, e.board), key=lambda d: np.nan_to_num(d.figures["max_abs"], nan=np.inf))
    return f"max_abs {worst.figures['max_abs']:.6g} at {worst.output}, sample {worst.worst_sample}"


def same(left: Arrays, right: Arrays) -> bool | None:
    """True when two answers are one in direction and in size; None when nothing can be compared."""
    close = closeness(left, right)
    return None if close is None else close >= SAME and _relative(left, right) <= ALIKE


def _relative(left: Arrays, right: Arrays) -> float:
    """Largest difference relative to the largest value; infinite where one is no number and the other is."""
    worst = 0.0
    for name, array in left.items():
        count = min(len(array), len(right[name])) if name in right else 0
        one, other = (np.asarray(a[:count], np.float64).ravel() for a in (array, right.get(name, array)))
        if count and one.size == other.size:
            with np.errstate(invalid="ignore"):  # infinite minus infinite
                apart = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
            largest = float(np.max(np.abs(other), where=np.isfinite(other), initial=0.0)) or 1.0
            worst = max(worst, float(np.nan_to_num(apart, nan=np.inf).max()) / largest)
    return worst


def _versions(e: Evidence) -> list[Diagnosis]:
    if e.skew is None:
        return []
    close = closeness(e.board, e.quantized)
    hurts = close is not None and not close >= SAME
    return [
        Diagnosis(
            "version-skew",
            "versions",
            0.9 if hurts else 0.6,
            f"The board's runtime is {e.skew[0]}, the model was built for {e.skew[1]}.",
            "Update the board's OS image, or compile with the toolchain of that runtime.",
            evidence=(f"Smallest cosine board against quantised model: {close:.6f}",) if close is not None else (),
        )
    ]


def _memory(e: Evidence) -> list[Diagnosis]:
    return [
        Diagnosis(
            "runtime-stride-ignored",
            "runtime",
            0.97,
            f"The dumped memory of {name} is filled row after row; its stride says padded rows.",
            "Copy by stride on the writing side; a plain memcpy of padded memory scrambles the values.",
            subject=name,
            evidence=("Padding bytes hold data and the end of the memory is empty.",),
        )
        for name in e.plain_copies
    ]


def _user_code(e: Evidence) -> list[Diagnosis]:
    found = [*judge_user_inputs(e), *judge_user_outputs(e)]
    close = closeness(e.user_outputs, e.board)
    if close is None or same(e.user_outputs, e.board):
        return found
    seen = f"Smallest cosine of the user's outputs against the board's: {close:.6f}, {_farthest(e)}"
    if close >= SAME:
        seen += ", but they are another multiple of it: a scale is missing or applied twice"
    explained = _explain(e, [*e.mistaken.items(), *mistaken_outputs(e)], seen)
    for name, outputs in e.others.items():
        if same(e.user_outputs, outputs):
            explained.append(
                Diagnosis(
                    "wrong-model-version",
                    "versions",
                    0.97,
                    f"The user's outputs are those of {name}, not of this model.",
                    "Deploy the model you mean.",
                    subject=name,
                    evidence=(seen, f"Against {name}: {closeness(e.user_outputs, outputs):.6f}"),
                )
            )
    if same(e.user_outputs, e.reference):
        text = (
            "The user's outputs are those of the float model on these samples: the code did not run the compiled one."
        )
        step = "Run the compiled model on the board; how far the two may differ is what a job's gates limit."
        explained.append(Diagnosis("float-model-run", "user-code", 0.95, text, step, evidence=(seen,)))
    if explained or found:
        return [*found, *explained]
    return [
        Diagnosis(
            "user-code-unexplained",
            "user-code",
            0.5,
            "The user's code gets other outputs than the board on the same samples; no known mistake explains them.",
            "Dump the bytes the code feeds as well (user inputs), and compare them with the samples.",
            evidence=(seen,),
        )
    ]


def _explain(e: Evidence, candidates: Iterable[tuple[str, Arrays]], seen: str) -> list[Diagnosis]:
    found: dict[str, Diagnosis] = {}
    for mistake, outputs in candidates:
        both = {name: array for name, array in outputs.items() if name in e.user_outputs}
        theirs = {name: e.user_outputs[name] for name in both}
        if not same(theirs, both) or same(both, {name: e.board[name] for name in both}):
            continue
        known = BY_ID[mistake]
        facts = (seen, f"Against the board with this mistake made on purpose: {closeness(theirs, both):.6f}")
        subject = ", ".join(sorted(both))
        found[mistake] = Diagnosis(mistake, "user-code", 0.99, known.message, known.next_step, subject, facts)
    return list(found.values())


def _board(e: Evidence) -> list[Diagnosis]:
    if e.repeated and _relative(e.repeated, e.board) > TINY:
        return [
            Diagnosis(
                "board-not-repeatable",
                "board",
                0.95,
                "The board answers the same samples differently the second time.",
                "Take the board out of rotation; check power, heat and memory.",
                evidence=(f"Largest relative difference between two runs: {_relative(e.repeated, e.board):.3g}",),
            )
        ]
    if not e.compiled_code_ran:
        return _code_not_run(e)
    close = closeness(e.board, e.quantized)
    if close is None or e.plain_copies:
        return []
    relative = _relative(e.board, e.quantized)
    if relative == 0.0:
        return []
    fact = f"Board against quantised model: smallest cosine {close:.8f}, largest relative difference {relative:.3g}"
    on_cpu = [n.name for n in e.nodes if n.on_cpu]
    if relative <= TINY and on_cpu:
        text = f"Board and quantised model differ only by rounding; {len(on_cpu)} nodes run on the CPU."
        step = "Nothing to repair: CPU kernels round differently. Move these nodes to the BPU if bits must match."
        return [Diagnosis("cpu-fallback-numerics", "runtime", 0.9, text, step, ", ".join(on_cpu[:5]), (fact,))]
    if relative <= TINY:
        return []
    if e.bit_equal_code is False:
        text = "The compiled code itself is not the quantised model: the vendor's simulator says so, too."
        step = "Rewrite the operator at fault (see the simulation's first difference), or report it to the vendor."
        return [Diagnosis("compiled-code-differs", "compiler", 0.95, text, step, evidence=(fact,))]
    for name, outputs in e.others.items():
        if same(e.board, outputs):
            text = f"The board runs {name}: its outputs are those of that version."
            return [
                Diagnosis("wrong-model-version", "versions", 0.95, text, "Deploy the model you mean.", name, (fact,))
            ]
    text = "The board leaves the quantised model although the inputs are the same."
    step = "Run the same samples on another board and in the vendor's simulator."
    return [Diagnosis("board-differs", "board", 0.7 if e.bit_equal_code else 0.5, text, step, evidence=(fact,))]


def _code_not_run(e: Evidence) -> list[Diagnosis]:
    """A stand-in answered with the quantised model itself: only the simulation's bit check knows about the code."""
    if e.bit_equal_code is not False:
        return []
    text = "The compiled code is not the quantised model, says the simulation's bit check; this board did not run it."
    step = "Rewrite the operator at fault (see the simulation's first difference), or report it to the vendor."
    return [Diagnosis("compiled-code-differs", "compiler", 0.8, text, step)]


def _model(e: Evidence) -> list[Diagnosis]:
    answers = e.quantized or e.board
    close = closeness(answers, e.reference)
    if close is None or close >= DISTORTED:
        return []
    seen = f"Quantised against float model: smallest cosine {close:.6f}"
    found = judge_calibration(e, seen)
    for name, outputs in e.others.items():
        match = closeness(outputs, e.reference)
        if match is not None and (match >= DISTORTED or 1 - match < (1 - close) / 4):
            found.append(
                Diagnosis(
                    "precision-too-low",
                    "quantiser",
                    0.8,
                    f"{name} follows the float model on the same samples ({match:.6f}).",
                    f"Use {name}, or give the damaged layer more bits.",
                    name,
                    (seen,),
                )
            )
    found += _layers(e, seen)
    if found:
        return found
    text = "The quantised model is far from the float model, and neither calibration data nor a layer stands out."
    step = (
        "Check that float model and compiled model are the same version; then try int16 or another calibration method."
    )
    return [Diagnosis("quantised-model-distorted", "quantiser", 0.5, text, step, evidence=(seen,))]


def _layers(e: Evidence, seen: str) -> list[Diagnosis]:
    known = [n for n in e.nodes if n.cosine > 0]
    drops = [(a.cosine - b.cosine, b) for a, b in pairwise(known)]
    if not drops:
        return []
    drop, node = max(drops, key=lambda item: item[0])
    if drop < DROP:
        return []
    text = f"The damage begins at {node.name} ({node.precision}): the vendor's cosine falls by {drop:.3f} there."
    step = f"Give {node.name} int16, or split its range (an outlier channel sets the scale of all)."
    return [Diagnosis("layer-range-overflow", "quantiser", 0.85, text, step, node.name, (seen, f"Drop {drop:.4f}"))]


def _consistent(e: Evidence) -> Diagnosis:
    facts = []
    for name, left, right in (
        ("user against board", e.user_outputs, e.board),
        ("board against quantised", e.board, e.quantized if e.compiled_code_ran else {}),
        ("board against float", e.board, e.reference),
    ):
        close = closeness(left, right)
        if close is not None:
            facts.append(f"{name}: smallest cosine {close:.6f}")
    if not e.compiled_code_ran:
        text = (
            "What was compared agrees, but the simulated board ran the quantised model in place of the compiled code."
        )
        step = "Look on a real board: nothing here is a check of the compiled code."
        return Diagnosis("consistent", "none", 0.5 if facts else 0.0, text, step, evidence=tuple(facts))
    return Diagnosis(
        "consistent",
        "none",
        0.9 if facts else 0.0,
        "Everything that was compared agrees.",
        "If results still look wrong, judge them by the task's own metric.",
        evidence=tuple(facts),
    )
