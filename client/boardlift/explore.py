"""Understand a model before a job: what it costs, which layers suffer, which form wins. Direct calls to the compiler.

Results are the protobuf messages themselves (`boardlift.v1.explore_pb2`), since they are wide and meant for tools.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boardlift._requests import to_ref
from boardlift.errors import InvalidInputError
from boardlift.stages import OnEvent, StageClient
from boardlift.v1 import artifact_pb2, compiler_pb2, explore_pb2, explore_pb2_grpc, toolchain_pb2, transform_pb2

NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass
class PreparedForms:
    """Forms of a model that are ready for the toolchain, or the transform that was refused."""

    forms: list[explore_pb2.ModelForm] = field(default_factory=list)
    """Forms with their samples; the first is the baseline."""
    refused: transform_pb2.TransformResult | None = None
    """Transform that said no."""


@dataclass
class MadeForms:
    """Forms that transform passes made, and what is to say of passes that made none."""

    forms: list[explore_pb2.ModelForm] = field(default_factory=list)
    """Forms with their samples."""
    findings: list[toolchain_pb2.Finding] = field(default_factory=list)
    """Passes that were refused or changed nothing."""

    def say(self, code: str, passes: Sequence[str], what: str) -> None:
        """Note why passes made no form."""
        names = ", ".join(passes)
        severity = toolchain_pb2.Finding.SEVERITY_NOTE
        finding = toolchain_pb2.Finding(code=code, severity=severity, subject=names, message=f"Pass {names} {what}.")
        self.findings.append(finding)


class ExploreClient(StageClient):
    """A `StageClient` that also asks the compiler's `ExploreService`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Connect lazily; arguments as of `StageClient`."""
        super().__init__(*arguments, **named)
        self._explore = explore_pb2_grpc.ExploreServiceStub(self._channels["compiler"])

    def __enter__(self) -> ExploreClient:
        return self

    def prepare_forms(
        self,
        model: Path,
        data: Path,
        spec: transform_pb2.TransformSpec,
        without: Sequence[str] = (),
        extra: Sequence[str] = (),
        on_event: OnEvent | None = None,
    ) -> PreparedForms:
        """Transform a model as planned, and once more without or with each of some passes.

        Args:
            model: The user's model.
            data: Dataset, split here into calibration and held-out samples.
            spec: How to transform it.
            without: Planned passes whose effect is searched: each is left out once, all of them in the baseline.
            extra: Passes that are not planned: each is added once behind the plan.
            on_event: Hears progress.
        """
        prepared = PreparedForms()
        seen: set[str] = set()
        for name, skipped, added in form_plans(without, extra):
            own = transform_pb2.TransformSpec()
            own.CopyFrom(spec)
            own.skip_passes.extend(skipped)
            if added:
                own.passes.extend([*self._planned(model, own), transform_pb2.PassRequest(id=added)])
            result = self.transform(model, own, data, on_event)
            if result.HasField("failure"):
                prepared.refused = result
                return prepared
            if result.model.sha256 in seen:
                continue
            seen.add(result.model.sha256)
            made_by = [p for p in (*without, *extra) if p == added or (p in without and p not in skipped)]
            prepared.forms.append(_form(name, result, made_by))
        return prepared

    def forms_with(
        self,
        model: Path,
        data: Path,
        spec: transform_pb2.TransformSpec,
        passes: Sequence[str],
        base: explore_pb2.ModelForm,
        on_event: OnEvent | None = None,
    ) -> MadeForms:
        """Transform a model once more with each of some passes added behind its plan, and with all that change it.

        Args:
            model: The user's model.
            data: Its dataset.
            spec: How `base` was transformed.
            passes: Passes to add.
            base: The form without them; a pass that gives the same model is named in a finding.
            on_event: Hears progress.
        """
        made = MadeForms()
        useful: list[str] = []
        plan = self._planned(model, spec) if passes else []
        for added in [*((name,) for name in passes), ()]:
            chosen = added or tuple(useful)
            if not added and len(useful) < 2:
                continue
            own = transform_pb2.TransformSpec()
            own.CopyFrom(spec)
            own.skip_passes[:] = [name for name in spec.skip_passes if name not in chosen]
            own.passes.extend([*plan, *(transform_pb2.PassRequest(id=name) for name in chosen)])
            result = self.transform(model, own, data, on_event)
            if result.HasField("failure"):
                made.say("PASS_REFUSED", chosen, f"is refused: {result.failure.message}")
            elif result.model.sha256 == base.model.sha256:
                made.say("PASS_CHANGES_NOTHING", chosen, "changes nothing here")
            else:
                useful.extend(added)
                made.forms.append(_form(form_name(added[0] if added else "all-passes"), result, chosen))
        return made

    def _planned(self, model: Path, spec: transform_pb2.TransformSpec) -> list[transform_pb2.PassRequest]:
        request = transform_pb2.PlanTransformRequest(model=self.source(model), spec=spec)
        plan = self._unary(transform_pb2.PlanTransformResponse, self._transform.PlanTransform, request, "transform")
        return [transform_pb2.PassRequest(id=p.id, parameters=p.parameters) for p in plan.passes]

    def estimate(self, compiled_model: Path) -> explore_pb2.EstimateLatencyResponse:
        """Estimate the latency of a compiled model."""
        request = explore_pb2.EstimateLatencyRequest(compiled_model=self.push(compiled_model))
        return self._unary(explore_pb2.EstimateLatencyResponse, self._explore.EstimateLatency, request, "compiler")

    def measure_sensitivity(
        self, request: explore_pb2.MeasureSensitivityRequest, on_event: OnEvent | None = None
    ) -> explore_pb2.SensitivityResult:
        """Measure what quantisation does to each layer."""
        result: explore_pb2.SensitivityResult = self._stream(
            self._explore.MeasureSensitivity, request, "compiler", on_event
        )
        return result

    def search(
        self, request: explore_pb2.SearchVariantsRequest, on_event: OnEvent | None = None
    ) -> explore_pb2.SearchResult:
        """Search plans, methods and forms."""
        result: explore_pb2.SearchResult = self._stream(self._explore.SearchVariants, request, "compiler", on_event)
        return result

    def try_remedies(
        self, request: explore_pb2.TryRemediesRequest, on_event: OnEvent | None = None
    ) -> explore_pb2.RemedyResult:
        """Name what brings CPU nodes back to the BPU, and try it when asked."""
        result: explore_pb2.RemedyResult = self._stream(self._explore.TryRemedies, request, "compiler", on_event)
        return result

    def simulate(
        self, request: compiler_pb2.SimulateModelRequest, on_event: OnEvent | None = None
    ) -> compiler_pb2.SimulateResult:
        """Run a quantised model on samples, and compare the compiled code with it bit by bit."""
        result: compiler_pb2.SimulateResult = self._stream(self._compiler.SimulateModel, request, "compiler", on_event)
        return result

    def push(self, path: Path) -> artifact_pb2.ArtifactRef:
        """Upload a file."""
        return to_ref(self._with_store(lambda store: store.push(path)))


def untried_passes(result: explore_pb2.RemedyResult) -> list[str]:
    """Return the transform passes that a result names as remedies and that no form was given for."""
    named = (r.transform_pass for r in result.remedies if not r.HasField("variant"))
    return list(dict.fromkeys(name for name in named if name))


def form_plans(without: Sequence[str], extra: Sequence[str] = ()) -> list[tuple[str, tuple[str, ...], str]]:
    """Return (form, passes left out, pass added), the baseline first.

    With passes to leave out the baseline lacks all of them; otherwise it is the model as planned.
    """
    plans: list[tuple[str, tuple[str, ...], str]] = [("as-planned", (), "")]
    if without:
        plans.insert(0, ("baseline", tuple(without), ""))
    if len(without) > 1:
        plans += [(form_name(f"without-{p}"), (p,), "") for p in without]
    return plans + [(form_name(f"with-{p}"), (), p) for p in extra]


def form_name(text: str) -> str:
    """Return a text as the name of a form: lower-case letters, digits and '-', at most 40."""
    return NOT_IN_NAMES.sub("-", text.lower()).strip("-")[:40] or "form"


def parse_goal(metric: str, output: str, target: float | None) -> explore_pb2.Goal:
    """Return a goal.

    Raises:
        InvalidInputError: GOAL_INVALID.
    """
    if target is not None and metric == "cosine" and not 0 <= target <= 1:
        raise InvalidInputError(
            f"A cosine of {target} can't be reached.", reason="GOAL_INVALID", remedy="Give a target between 0 and 1."
        )
    goal = explore_pb2.Goal(metric=metric, output=output)
    if target is not None:
        goal.target = target
    return goal


def _form(name: str, result: transform_pb2.TransformResult, made_by: Sequence[str]) -> explore_pb2.ModelForm:
    return explore_pb2.ModelForm(
        name=name,
        model=result.model,
        transform_pass=",".join(made_by)[:200],
        calibration=result.calibration,
        heldout=result.heldout,
        reference_outputs=result.reference_outputs,
    )
