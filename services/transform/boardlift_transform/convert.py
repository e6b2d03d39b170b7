"""Between the wire and the domain: one function per message."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from boardlift.errors import InvalidInputError
from boardlift.v1 import toolchain_pb2, transform_pb2

from boardlift_transform import inspect
from boardlift_transform.check_result import Finding
from boardlift_transform.convert_diff import graph_diff
from boardlift_transform.equivalence import OutputComparison
from boardlift_transform.io_map import INPUT, IoEntry
from boardlift_transform.normalise_samples import Normalisation
from boardlift_transform.passes._base import Pass
from boardlift_transform.plan import PlannedPass
from boardlift_transform.refusal import Refusal
from boardlift_transform.request import Request
from boardlift_transform.runner import PassReport

MAX_CHANGES = 500
_SEVERITY = {
    "note": toolchain_pb2.Finding.SEVERITY_NOTE,
    "warning": toolchain_pb2.Finding.SEVERITY_WARNING,
    "error": toolchain_pb2.Finding.SEVERITY_ERROR,
}


def request_from(spec: transform_pb2.TransformSpec) -> Request:
    """The domain's request.

    Raises:
        InvalidInputError: A parameter is no JSON.
    """
    return Request(
        outputs=tuple(spec.outputs),
        input_shapes={s.name: tuple(s.shape) for s in spec.input_shapes},
        frozen_inputs={name: _json(name, text) for name, text in spec.frozen_inputs.items()},
        passes=tuple((p.id, {k: _loose(v) for k, v in p.parameters.items()}) for p in spec.passes),
        skip_passes=tuple(spec.skip_passes),
        precision=spec.precision,
        opset=int(spec.opset),
        keep_foreign_domains=spec.keep_foreign_domains,
    )


def normalisations(spec: transform_pb2.TransformSpec) -> list[Normalisation]:
    """The inputs that the compiled model normalises by itself."""
    return [Normalisation(i.name, tuple(i.mean), tuple(i.scale), i.layout) for i in spec.normalised_inputs]


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} is no JSON: {text[:80]!r}.",
            reason="PARAMETER_INVALID",
            remedy="Write numbers, lists and strings as JSON.",
            metadata={"parameter": name},
        ) from error


def _loose(text: str) -> Any:
    """A pass parameter: JSON, else a plain word, else words with commas between them."""
    try:
        return json.loads(text)
    except ValueError:
        return [part.strip() for part in text.split(",")] if "," in text else text


def tensor(spec: inspect.TensorSpec | None) -> toolchain_pb2.TensorSpec:
    """Name, type, shape and layout."""
    if spec is None:
        return toolchain_pb2.TensorSpec()
    return toolchain_pb2.TensorSpec(name=spec.name, dtype=spec.dtype, shape=spec.shape, layout=spec.layout)


def summary(found: inspect.ModelSummary) -> transform_pb2.ModelSummary:
    """A model's facts."""
    return transform_pb2.ModelSummary(
        sha256=found.sha256,
        opset=found.opset,
        other_opsets=found.other_opsets,
        ir_version=found.ir_version,
        producer=found.producer,
        inputs=[tensor(t) for t in found.inputs],
        outputs=[tensor(t) for t in found.outputs],
        operators=found.operators,
        nodes=found.nodes,
        parameters=found.parameters,
        macs=min(found.macs, (1 << 63) - 1),
        largest_tensors=[tensor(t) for t in found.largest_tensors],
        metadata=found.metadata,
    )


OUR_FAULTS = frozenset(
    {"PASS_FAILED", "RESULT_NOT_LEGAL", "RESULT_INVALID", "OPSET_NOT_REACHED", "NOT_EQUIVALENT", "CANCELLED"}
)
"""Reasons that blame our code, not the input: such results are never stored, and the stage is tried again."""


def failure(refusal: Refusal) -> toolchain_pb2.StageFailure:
    """Why the input was refused."""
    subject = next(
        (refusal.metadata[k] for k in ("node", "input", "output", "value", "tensor") if k in refusal.metadata), ""
    )
    return toolchain_pb2.StageFailure(
        code=refusal.reason,
        message=refusal.message[:4000],
        subject=subject[:500],
        remedy=refusal.remedy[:2000],
        evidence=[f"{k}: {v}"[:500] for k, v in refusal.metadata.items()],
        user_fault=refusal.reason not in OUR_FAULTS,
    )


def findings(found: Iterable[Finding]) -> list[toolchain_pb2.Finding]:
    """Findings with their severity."""
    return [
        toolchain_pb2.Finding(
            code=f.code, severity=_SEVERITY[f.severity], message=f.message, subject=f.subject, remedy=f.remedy
        )
        for f in found
    ]


def planned(step: PlannedPass, passes: Mapping[str, Pass]) -> transform_pb2.PlannedPass:
    """A step of a plan."""
    parameters = {k: json.dumps(v, default=lambda x: np.asarray(x).tolist()) for k, v in step.parameters.items()}
    return transform_pb2.PlannedPass(
        id=step.id, reason=step.reason, parameters=parameters, exactness=passes[step.id].exactness
    )


def described(item: Pass) -> transform_pb2.PassDescription:
    """A pass with its parameters."""
    doc = (__import__(item.apply.__module__, fromlist=["__doc__"]).__doc__ or "").split("Why:")
    reason = " ".join(doc[1].split("Exactness:")[0].split()) if len(doc) > 1 else ""
    return transform_pb2.PassDescription(
        id=item.id,
        summary=item.summary,
        reason=reason,
        exactness=item.exactness,
        parameters={p.name: p.description for p in item.parameters},
    )


def pass_report(report: PassReport) -> transform_pb2.PassReport:
    """What a pass did; long lists are cut, the counts of nodes are not."""
    return transform_pb2.PassReport(
        id=report.id,
        applied=[
            transform_pb2.PassChange(node=a.node, before=a.before, after=a.after) for a in report.applied[:MAX_CHANGES]
        ],
        skipped=[transform_pb2.PassSkip(node=s.node, reason=s.reason) for s in report.skipped[:MAX_CHANGES]],
        seconds=report.seconds,
        nodes_before=report.nodes_before,
        nodes_after=report.nodes_after,
        diff=graph_diff(report.diff) if report.diff is not None else None,
    )


def mapping(entry: IoEntry) -> transform_pb2.IoMapping:
    """One tensor before and after."""
    side = transform_pb2.IoMapping
    direction = side.DIRECTION_INPUT if entry.direction == INPUT else side.DIRECTION_OUTPUT
    return side(
        direction=direction,
        before=tensor(entry.before),
        after=tensor(entry.after) if entry.after is not None else None,
        rule=entry.rule,
    )


def comparison(found: OutputComparison) -> toolchain_pb2.OutputComparison:
    """Errors of one output; all measured, by stock onnxruntime."""
    source = f"onnxruntime {onnxruntime.__version__}"
    values: Sequence[tuple[str, float]] = (
        ("cosine", found.cosine),
        ("max_abs", found.max_abs),
        ("mean_abs", found.mean_abs),
        ("max_rel", found.max_rel),
    )
    figures = [
        toolchain_pb2.Figure(name=name, value=value, unit="1", kind=toolchain_pb2.FIGURE_KIND_MEASURED, source=source)
        for name, value in values
    ]
    return toolchain_pb2.OutputComparison(
        output=found.output,
        samples=found.samples,
        figures=figures,
        worst_sample=found.worst_sample,
        allowed_max_abs=found.tolerance,
    )


def tools() -> list[toolchain_pb2.ToolchainInfo]:
    """The libraries that take part."""
    versions = {"onnx": onnx.__version__, "numpy": np.__version__, "python": platform.python_version()}
    return [
        toolchain_pb2.ToolchainInfo(name="onnxruntime", version=onnxruntime.__version__, parts=versions, known=True)
    ]
