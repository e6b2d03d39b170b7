"""Follow the elements of sequences whose length is known.

Before -> After: `SplitToSequence(x)`, `SequenceAt(s, 1)` -> Slice; `ConcatFromSequence(SequenceConstruct(a, b))` ->
Concat.
Why: the tool knows tensors only. Exporters write sequences for lists of tensors; those that a Loop fills are followed
by `unroll-loop` in its own walk, since the length of one may be the count of the next loop.
Exactness: bit-exact; constants are folded as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from boardlift_transform.edit_graph import remove_unused
from boardlift_transform.fold_graph import fold_graph
from boardlift_transform.passes._base import ROUNDING, Pass, PassResult
from boardlift_transform.sequence_rules import SequenceRules


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Replace what reads a known sequence.

    Raises:
        Refusal: SEQUENCE_ON_DATA, with the node.
    """
    result = fold_graph(model, PASS.id, rules=SequenceRules().rules)
    remove_unused(model.graph)
    return result


PASS = Pass(
    id="replace-sequences",
    summary="sequences of known length -> the tensors they hold, Slice, Concat",
    exactness=ROUNDING,
    apply=apply,
)
