"""What the user's code fed, against what it should have fed. Pure."""

from __future__ import annotations

import numpy as np

from boardlift_board_agent.compare_outputs import cosine
from boardlift_board_agent.diagnosis.evidence import Array, Diagnosis, Evidence
from boardlift_board_agent.diagnosis.mistakes import BY_ID, mistaken_inputs
from boardlift_board_agent.feed_model import input_bytes

_EXACT = 1e-5


def judge_user_inputs(e: Evidence) -> list[Diagnosis]:
    """Names the mistake in the inputs themselves, when the user's code dumped them.

    Args:
        e: `user_inputs`, `samples` and `specs`.
    """
    if not e.user_inputs:
        return []
    found = []
    mistaken = mistaken_inputs(e.samples, e.specs)
    for name, fed in e.user_inputs.items():
        if name not in e.samples:
            text = f"The model has no input {name}; it has {', '.join(sorted(e.samples))}."
            found.append(Diagnosis("input-name-unknown", "user-code", 0.9, text, "Match inputs by name.", name))
            continue
        right = _as_fed(e, name, np.asarray(fed))
        if _same(fed, right):
            continue
        match = next((m for m, inputs in mistaken.items() if name in inputs and _same(fed, inputs[name])), None)
        found.append(_known(match, name) if match else _fitted(name, fed, right))
    return found


def _as_fed(e: Evidence, name: str, fed: Array) -> Array:
    """The sample as it should have been fed: of a picture its bytes, when the code dumped bytes."""
    right = np.asarray(e.samples[name])
    spec = next((t for t in e.specs if t.input and t.name == name), None)
    if spec is None or not spec.image or fed.dtype != np.uint8:
        return right
    return np.stack([np.frombuffer(input_bytes(sample, spec), np.uint8) for sample in right])


def _same(left: Array, right: Array) -> bool:
    if np.size(left) != np.size(right):
        return False
    a, b = np.asarray(left, np.float64).ravel(), np.asarray(right, np.float64).ravel()
    return bool(np.abs(a - b).max(initial=0) <= _EXACT * max(np.abs(b).max(initial=0), 1e-12))


def _known(mistake: str, name: str) -> Diagnosis:
    known = BY_ID[mistake]
    fact = "The bytes the code fed are exactly those of this mistake."
    return Diagnosis(mistake, "user-code", 0.99, known.message, known.next_step, name, (fact,))


def _fitted(name: str, fed: Array, right: Array) -> Diagnosis:
    if np.size(fed) != np.size(right):
        text = f"The code fed {np.size(fed)} values into {name}, which takes {np.size(right)}."
        return Diagnosis("input-size-wrong", "user-code", 0.95, text, "Feed one whole sample.", name)
    x, y = np.asarray(right, np.float64).ravel(), np.asarray(fed, np.float64).ravel()
    slope, offset = np.polyfit(x, y, 1) if x.std() > 0 else (0.0, float(y.mean()))
    explained = cosine(y - y.mean(), x - x.mean()) if x.std() > 0 and y.std() > 0 else 0.0
    if explained > 0.9999:
        text = f"The code fed {slope:.4g} times the right values {offset:+.4g} into {name}: another normalisation."
        step = "Use the same mean and scale as in training."
        return Diagnosis("input-normalised-differently", "user-code", 0.97, text, step, name, (f"r = {explained:.6f}",))
    text = f"What the code fed into {name} is not the sample, nor a known mistake made with it."
    step = "Check that both sides mean the same sample, then layout and type."
    return Diagnosis("input-other-data", "user-code", 0.6, text, step, name, (f"r = {explained:.4f}",))
