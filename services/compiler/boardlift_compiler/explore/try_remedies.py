"""Name remedies for nodes on the CPU, and try them for real: every remedy is built and ranked by its estimated time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from boardlift.v1 import artifact_pb2, compiler_pb2, explore_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.executions import Emitter

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.convert import SIMULATED, figure
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.explore.build_variant import VariantBuilder
from boardlift_compiler.explore.convert import island_to_wire
from boardlift_compiler.explore.describe_build import BuildDescription, describe_build, describe_check
from boardlift_compiler.explore.find_check_islands import islands_of_check
from boardlift_compiler.explore.suggest_remedies import Suggestion, remedies_about, suggest_remedies
from boardlift_compiler.explore.tell_remaining import Pace
from boardlift_compiler.read_model import ModelSummary
from boardlift_compiler.spec import CompileSpec

AT_THE_END = "at an end of the model: it costs no handover"


class RemedyRun:
    """Tries remedies on one model."""

    def __init__(
        self, builder: VariantBuilder, store: ArtifactStore, emitter: Emitter, request: explore_pb2.TryRemediesRequest
    ) -> None:
        """Prepare."""
        self._builder, self._store, self._request = builder, store, request
        self._source = f"hb_mapper {builder.runner.toolchain.version}"
        self._pace = Pace(emitter)

    async def run(self, model: ModelSummary, spec: CompileSpec) -> explore_pb2.RemedyResult:
        """Name remedies, and try them when asked."""
        result = explore_pb2.RemedyResult()
        form = self._request.form
        variant = compiler_convert.spec_to_wire(spec)
        self._pace("looking at the model", 0.01)
        if not self._request.try_remedies:
            # Placement does not depend on the variant: so an earlier CheckModel of the same model answers.
            checked = await self._builder.check(form.model, compiler_pb2.VariantSpec())
            if checked.HasField("failure"):
                result.failure.CopyFrom(checked.failure)
                return result
            islands = islands_of_check(checked.nodes, model)
            result.islands.extend(island_to_wire(i) for i in islands)
            self._name(result, checked.nodes, model, spec)
            result.baseline.CopyFrom(describe_check(checked))
            return result
        built = await self._builder.compile(form.model, variant, self._calibration(form))
        if built.HasField("failure"):
            result.failure.CopyFrom(built.failure)
            return result
        baseline = await describe_build(built, self._store)
        if isinstance(baseline, StageFailure):
            result.failure.CopyFrom(compiler_convert.failure_to_wire(baseline))
            return result
        result.baseline.CopyFrom(baseline.to_wire(self._source))
        result.islands.extend(island_to_wire(i) for i in baseline.islands)
        self._name(result, built.nodes, model, spec)
        await self._try_all(result, baseline, variant)
        return result

    def _calibration(self, form: explore_pb2.ModelForm) -> artifact_pb2.ArtifactRef:
        return form.calibration if form.calibration.sha256 else self._request.calibration

    def _name(
        self,
        result: explore_pb2.RemedyResult,
        nodes: Sequence[compiler_pb2.NodePlacement],
        model: ModelSummary,
        spec: CompileSpec,
    ) -> None:
        cpu = [n for n in nodes if n.device == "CPU"]
        suggestions = suggest_remedies([n.node for n in cpu], model, spec)
        ends = {name.split(" (")[0] for i in result.islands if not i.splits for name in i.nodes}
        for node in cpu:
            reason = node.reason + (f"; {AT_THE_END}" if node.node in ends else "")
            remedies = remedies_about(node.node, suggestions)
            result.cpu_nodes.add(node=node.node, type=node.type, reason=reason, remedies=remedies)
        passed = {a.transform_pass for a in self._request.alternatives if a.transform_pass}
        for item in suggestions:
            if item.transform_pass not in passed or item.kind != "transform":
                result.remedies.append(self._suggested(item, spec))
        for form in self._request.alternatives:
            about = next((s.nodes for s in suggestions if s.transform_pass == form.transform_pass), ())
            text = f"Use the form {form.name}" + (f", made by {form.transform_pass}." if form.transform_pass else ".")
            remedy = result.remedies.add(name=form.name, kind="transform", nodes=about, message=text)
            remedy.transform_pass = form.transform_pass
            remedy.variant.CopyFrom(compiler_convert.spec_to_wire(spec))

    def _suggested(self, item: Suggestion, spec: CompileSpec) -> explore_pb2.Remedy:
        remedy = explore_pb2.Remedy(
            name=item.name, kind=item.kind, nodes=item.nodes, message=item.message, transform_pass=item.transform_pass
        )
        if item.spec is not None:
            remedy.variant.CopyFrom(compiler_convert.spec_to_wire(item.spec))
        return remedy

    async def _try_all(
        self, result: explore_pb2.RemedyResult, baseline: BuildDescription, variant: compiler_pb2.VariantSpec
    ) -> None:
        pairs = [(r, f) for r in result.remedies if r.HasField("variant") for f in self._forms_for(r)]
        done = 0

        async def attempt(remedy: explore_pb2.Remedy, form: explore_pb2.ModelForm) -> None:
            nonlocal done
            await self._try(remedy, form, baseline)
            done += 1
            self._pace("try remedies", (1 + done) / (1 + len(pairs)), done, len(pairs))

        self._combine(result, pairs)
        self._pace("try remedies", 1 / (1 + len(pairs)), 0, len(pairs))
        await asyncio.gather(*(attempt(r, f) for r, f in pairs))
        tried = sorted((r for r in result.remedies if r.HasField("gain_us")), key=lambda r: r.gain_us)
        others = [r for r in result.remedies if not r.HasField("gain_us")]
        del result.remedies[:]
        result.remedies.extend([*tried, *others])

    def _forms_for(self, remedy: explore_pb2.Remedy) -> list[explore_pb2.ModelForm]:
        named = [f for f in self._request.alternatives if f.name == remedy.name]
        return named or [self._request.form]

    def _combine(
        self,
        result: explore_pb2.RemedyResult,
        pairs: list[tuple[explore_pb2.Remedy, explore_pb2.ModelForm]],
    ) -> None:
        """Add every alternative together with every precision: each alone may leave another CPU node in the way."""
        precisions = [r for r in result.remedies if r.kind == "precision"]
        for form in self._request.alternatives:
            for other in precisions:
                remedy = result.remedies.add(name=f"{form.name}+{other.name}", kind="transform", nodes=other.nodes)
                remedy.message = f"Use the form {form.name} and {other.message[0].lower()}{other.message[1:]}"
                remedy.transform_pass = form.transform_pass
                remedy.variant.CopyFrom(other.variant)
                pairs.append((remedy, form))

    async def _try(self, remedy: explore_pb2.Remedy, form: explore_pb2.ModelForm, baseline: BuildDescription) -> None:
        built = await self._builder.compile(form.model, remedy.variant, self._calibration(form))
        remedy.tried = True
        if built.HasField("failure"):
            remedy.failure.CopyFrom(built.failure)
            return
        described = await describe_build(built, self._store)
        if isinstance(described, StageFailure):
            remedy.failure.CopyFrom(compiler_convert.failure_to_wire(described))
            return
        remedy.latency.CopyFrom(described.to_wire(self._source))
        remedy.gain_us = round((described.estimate.board_ms - baseline.estimate.board_ms) * 1000.0, 1)
        remedy.cpu_nodes.extend(name for i in described.islands if i.splits for name in i.names)
        values = [f.value for o in built.vendor_outputs for f in o.figures if f.name == "cosine"]
        if values:
            remedy.vendor_cosine.CopyFrom(figure("cosine", min(values), "1", SIMULATED, self._source))
