"""The steps of one Loop, put in its place one by one: plain copies of the body, or in an If where the data decide."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, constant_of, source_of
from boardlift_transform.fold_graph import GraphFolder
from boardlift_transform.infer_node import infer_node
from boardlift_transform.inline_graph import copy_body, inline_before, run_if
from boardlift_transform.pass_result import node_label
from boardlift_transform.refusal import Refusal

FIX = "freeze the input that decides it (frozen_inputs), or export it with a fixed count and compute every step"
"""What to do about a Loop that the data end."""


@dataclass
class LoopSteps:
    """A Loop between two of its steps."""

    node: ir.Node
    """The Loop."""
    folder: GraphFolder
    """The walk that met it."""
    carried: list[ir.Value]
    """What the loop gives when it ends here."""
    running: ir.Value | None
    """Whether the next step runs."""
    known: dict[int, Array] = field(default_factory=dict)
    """Carried values that are constant if the next step runs, by place."""
    rows: list[list[ir.Value]] = field(default_factory=list)
    """What each step gave to collect."""
    count: int = 0
    """Steps taken."""
    guarded: int = 0
    """Those of them that stand in an If."""

    @property
    def goes_on(self) -> bool | None:
        """Whether the next step runs; None when the data decide."""
        return certain(self.running)

    def take(self, body: ir.Graph) -> None:
        """Put one more copy in front of the Loop."""
        editor, label = self.folder.editor, node_label(self.node)
        numbers = {"step": np.asarray(self.count, np.int64), "condition": np.asarray(True)}
        feeds = [editor.constant(array, f"{label}_{name}") for name, array in numbers.items()]
        feeds += [
            editor.constant(self.known[i], f"{v.name}_known") if i in self.known else v
            for i, v in enumerate(self.carried)
        ]
        copy, decided = copy_body(body, feeds, editor), self.goes_on is None
        self.folder.within(copy).fold()
        self.count += 1
        if not decided or self.running is None:
            self.running, *made = inline_before(self.node, copy, editor)
            self.carried = made[: len(self.carried)]
            self.rows.append(made[len(self.carried) :])
            return
        if len(copy.outputs) > 1 + len(self.carried):
            raise refused("LOOP_ON_DATA", label, "collects a number of rows that the data decide", FIX)
        ends, constants = certain(copy.outputs[0]), [constant_of(source_of(v)) for v in copy.outputs[1:]]
        otherwise = [editor.constant(np.asarray(False), f"{label}_ended"), *self.carried]
        branch = run_if(self.node, self.running, copy, otherwise, editor, f"{label}_step_{self.count}")
        infer_node(branch, self.folder.imports, self.folder.schemas)
        running, *self.carried = branch.outputs
        self.running = running if ends is not False else otherwise[0]
        self.known = {i: array for i, array in enumerate(constants) if array is not None}
        self.guarded += 1


def certain(condition: ir.Value | None) -> bool | None:
    """The truth of a condition where it is constant; an absent one holds, and one with a False in it does not."""
    if condition is None:
        return True
    source = source_of(condition)
    known, maker = constant_of(source), source.producer()
    if known is not None:
        return bool(known.reshape(-1)[0])
    parts = [certain(v) for v in maker.inputs] if maker is not None and maker.op_type == "And" else [None]
    return False if False in parts else None


def refused(reason: str, label: str, message: str, remedy: str) -> Refusal:
    """The refusal of one Loop or Scan."""
    return Refusal(reason, f"{label} {message}", remedy=remedy, metadata={"node": label})
