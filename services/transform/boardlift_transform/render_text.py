"""Plans, results, summaries and refusals as text and as plain data for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from boardlift_transform.diff_graph import diff_lines
from boardlift_transform.inspect import ModelSummary
from boardlift_transform.plan import Plan
from boardlift_transform.refusal import Refusal
from boardlift_transform.runner import PassReport
from boardlift_transform.transform_model import TransformResult

SHOWN = 8


def plain(value: Any) -> Any:
    """Dataclasses, arrays and refusals as dicts, lists, numbers and strings."""
    if isinstance(value, Refusal):
        parts = {"reason": value.reason, "message": value.message, "remedy": value.remedy}
        return {**parts, "metadata": value.metadata}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(v) for v in value]
    return value


def result_data(result: TransformResult) -> dict[str, Any]:
    """A result without the model's and the samples' bytes."""
    return {
        "before": plain(result.before),
        "after": plain(result.after),
        "passes": plain(result.passes),
        "io_map": plain(result.io_map),
        "assumptions": list(result.assumptions),
        "findings": plain(result.findings),
        "equivalence": [{**plain(c), "passed": c.passed, "kind": "measured"} for c in result.proof.comparisons],
        "random_inputs": result.proof.random_inputs,
        "batch_of_8": result.proof.batch,
    }


def refusal_text(refusal: Refusal) -> str:
    """A refusal in two lines."""
    lines = [f"refused  {refusal.reason}: {refusal.message}"]
    if refusal.remedy:
        lines.append(f"remedy   {refusal.remedy}")
    return "\n".join(lines)


def plan_text(chosen: Plan, reports: Mapping[int, Any], with_diff: bool = False) -> str:
    """A plan, one line per pass; what it would change where a dry run is at hand."""
    lines = []
    for index, step in enumerate(chosen.passes):
        report = reports.get(index)
        count = f"{len(report.applied):5d} changes" if report is not None else ""
        lines.append(f"{step.id:22s} {count:14s} {step.reason}")
        if report is not None:
            lines += [f"    {a.node}: {a.before} -> {a.after}" for a in report.applied[:SHOWN]]
            if len(report.applied) > SHOWN:
                lines.append(f"    ... and {len(report.applied) - SHOWN} more")
            lines += [f"    left alone {s.node}: {s.reason}" for s in report.skipped[:SHOWN]]
            lines += [f"    assumed {a}" for a in report.assumptions]
            lines += _diff(report) if with_diff else []
    return "\n".join([*lines, *(refusal_text(r) for r in chosen.refusals)])


def summary_text(found: ModelSummary) -> str:
    """A model on one screen."""
    lines = [
        f"sha256     {found.sha256}",
        f"opset      {found.opset} (IR {found.ir_version}) {dict(found.other_opsets) or ''}".rstrip(),
        f"producer   {found.producer}",
        f"size       {found.nodes} nodes, {found.parameters} parameters, {found.macs} MACs",
    ]
    lines += [f"input      {t.name} {t.dtype} {list(t.shape)}" for t in found.inputs]
    lines += [f"output     {t.name} {t.dtype} {list(t.shape)}" for t in found.outputs]
    lines.append("operators  " + ", ".join(f"{op} {count}" for op, count in found.operators.items()))
    lines += [f"large      {t.name} {t.dtype} {list(t.shape)}" for t in found.largest_tensors[:3]]
    return "\n".join(lines)


def _diff(report: PassReport) -> list[str]:
    return [f"    {line}" for line in diff_lines(report.diff)] if report.diff is not None else []


def result_text(result: TransformResult, with_diff: bool = False) -> str:
    """A result: changes, I/O map, proof."""
    lines = []
    for r in result.passes:
        details = _diff(r) if with_diff else []
        if r.applied or details:
            lines += [f"{r.id:22s} {len(r.applied):5d} changes  {r.seconds * 1e3:7.1f} ms", *details]
    lines += [f"assumed    {a}" for a in result.assumptions]
    for entry in result.io_map:
        new = entry.after
        after = f"{new.name} {new.dtype} {list(new.shape)}" if new is not None else "-"
        lines.append(f"{entry.direction:10s} {entry.before.name} {list(entry.before.shape)} -> {after}  ({entry.rule})")
    inputs = "random inputs" if result.proof.random_inputs else "your samples"
    for c in result.proof.comparisons:
        verdict = "equal" if c.passed else "DIFFERS"
        figures = f"max_abs {c.max_abs:.3g} (allowed {c.tolerance:.3g}), cosine {c.cosine:.9f}"
        lines.append(f"proof      {c.output}: {verdict}, {figures}, measured on {c.samples} {inputs}")
    lines.append(f"batch 8    {result.proof.batch}")
    lines += [f"{f.severity:10s} {f.code} {f.subject}: {f.message}" for f in result.findings]
    return "\n".join(lines)
