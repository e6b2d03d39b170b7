"""Outputs of the user's code that can't be compared with the board's: an own cause, never silence. Pure."""

from __future__ import annotations

import numpy as np

from boardlift_board_agent.diagnosis.evidence import Diagnosis, Evidence
from boardlift_board_agent.diagnosis.mistakes import BY_ID


def judge_user_outputs(e: Evidence) -> list[Diagnosis]:
    """Names what is wrong with names, sizes and the order of dimensions.

    Args:
        e: `user_outputs` and `board`.
    """
    found = []
    for name, values in e.user_outputs.items():
        if name not in e.board:
            text = f"The model has no output {name}; it has {', '.join(sorted(e.board))}."
            found.append(Diagnosis("output-name-unknown", "user-code", 0.9, text, "Match outputs by name.", name))
            continue
        got, right = np.asarray(values), np.asarray(e.board[name])
        count = min(len(got), len(right))
        shapes = [[d for d in a.shape[1:] if d != 1] for a in (got, right)]
        shown = f"{list(got.shape[1:])} where the board gives {list(right.shape[1:])}"
        if np.size(got[:count]) != np.size(right[:count]):
            text = f"The code got {shown} for {name}."
            step = "Read the whole output once, without its padding; model_info shows shape and stride."
            found.append(Diagnosis("output-size-wrong", "user-code", 0.95, text, step, name))
        elif shapes[0] != shapes[1]:
            equal = np.array_equal(got[:count].ravel(), right[:count].ravel())
            known = BY_ID["output-layout-misread"]
            text = f"{known.message} The code has {shown} for {name}."
            fact = "The values are the board's, in the board's order." if equal else "The values differ as well."
            sure = 0.99 if equal else 0.6
            found.append(Diagnosis(known.id, "user-code", sure, text, known.next_step, name, (fact,)))
    return found
