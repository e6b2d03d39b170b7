"""Run one pass on one model and compare before and after in onnxruntime: what every pass test does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from boardlift_transform.edit_graph import Array, names_of
from boardlift_transform.equivalence import OutputComparison, compare, run_reference
from boardlift_transform.inspect import TensorSpec, spec_of
from boardlift_transform.io_map import io_map
from boardlift_transform.load_model import load_model
from boardlift_transform.pass_result import PassResult
from boardlift_transform.plan import PlannedPass
from boardlift_transform.runner import run_plan
from boardlift_transform.samples import input_bounds, random_samples

SHAPES = (PlannedPass("fix-dynamic-dims", ""), PlannedPass("fold-constants", ""))


@dataclass(frozen=True)
class PassRun:
    """A pass's effect on a model."""

    model: onnx.ModelProto
    """The model after the pass, checked by onnx."""
    result: PassResult
    """What the pass says it did."""
    comparisons: tuple[OutputComparison, ...]
    """Measured differences per output."""

    @property
    def operators(self) -> list[str]:
        """Operators in graph order."""
        return [node.op_type for node in self.model.graph.node]

    @property
    def max_rel(self) -> float:
        """Largest relative difference of any output."""
        return max(c.max_rel for c in self.comparisons)


def run_one_pass(
    model: onnx.ModelProto,
    pass_id: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    before: Sequence[str] = (),
    samples: Sequence[Mapping[str, Array]] | None = None,
) -> PassRun:
    """Fix shapes, run `before` and then the pass, check the result with onnx, compare with the original.

    Args:
        model: The original.
        pass_id: The pass under test.
        parameters: Its parameters.
        before: Pass ids to run between the shapes and the pass.
        samples: Feeds; random when absent.
    """
    loaded = load_model(model)
    working = loaded.to_ir()
    run_plan(working, SHAPES[:1])
    inputs = [spec_of(v) for v in working.graph.inputs]
    run_plan(working, [SHAPES[1], *(PlannedPass(p, "") for p in before)])
    report = run_plan(working, [PlannedPass(pass_id, "", parameters or {})])[0]
    result = PassResult(list(report.applied), list(report.skipped), list(report.assumptions))
    made = ir.to_proto(working)
    onnx.checker.check_model(made, full_check=True)
    feeds = list(samples) if samples is not None else random_samples(input_bounds(loaded.to_ir()), inputs)
    names = names_of(working.graph.outputs)
    reference = run_reference(model.SerializeToString(), names, feeds)
    outputs = [TensorSpec(n, str(np.asarray(reference[0][n]).dtype), reference[0][n].shape) for n in names]
    entries = io_map(inputs, working, outputs)
    comparisons = compare(reference, made.SerializeToString(), entries, feeds, 1.0)
    return PassRun(made, result, tuple(comparisons))
