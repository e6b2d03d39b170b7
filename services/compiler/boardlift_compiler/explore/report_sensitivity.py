"""Prove a suggested plan with a real build on all held-out samples, and write what a sensitivity measurement found."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from boardlift.v1 import explore_pb2
from boardlift_servicekit.artifacts import ArtifactStore

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.explore.build_variant import VariantBuilder
from boardlift_compiler.explore.choose_plan import IMPLIED_SHARE, clipped_layers
from boardlift_compiler.explore.convert import EMULATION, INTEGER_MODEL, layer_to_wire, metric_figure
from boardlift_compiler.explore.describe_build import describe_build, otherwise_than_asked
from boardlift_compiler.explore.evaluate_builds import Evaluation, Evaluator
from boardlift_compiler.explore.judge import Errors, judge
from boardlift_compiler.explore.load_forms import Form
from boardlift_compiler.explore.measure_sensitivity import Sensitivity
from boardlift_compiler.explore.sample_sets import pack_samples
from boardlift_compiler.explore.tell_remaining import Pace
from boardlift_compiler.findings import Finding
from boardlift_compiler.spec import CompileSpec

PLANS = ("int8", "int16", "suggested")
NEAR = f"{IMPLIED_SHARE:.0%} of the way from int8 to int16 in the emulation"
MOST_BUILDS = 5
"""Builds of suggested plans until one reaches the target as an integer model."""
NEAR_MISS = 0.15
"""Share of the target's loss by which a plan's emulation may miss it and the plan is built all the same."""


class SensitivityReport:
    """Writes the result of one measurement."""

    def __init__(self, builder: VariantBuilder, evaluator: Evaluator, store: ArtifactStore) -> None:
        """Prepare."""
        self._builder, self._evaluator, self._store = builder, evaluator, store
        self._source = f"hb_mapper {builder.runner.toolchain.version}"

    async def write(self, form: Form, found: Sensitivity, *, prove: bool, pace: Pace) -> explore_pb2.SensitivityResult:
        """Write the result; with ``prove`` the plans are built and run first."""
        result = explore_pb2.SensitivityResult(samples=found.samples, target_implied=found.implied)
        if found.refusal is not None:
            result.failure.CopyFrom(found.refusal)
            return result
        proven: dict[str, Errors | StageFailure] = {}
        if prove:
            proven = await self._build_and_prove(form, found, pace)
        plans = {p: self._plan(p, found, proven.get(p)) for p in PLANS if p in found.specs}
        lost = await self._add_latencies(plans, found) if prove else []
        result.plans.extend(plans.values())
        chosen = cheapest_reaching(plans, built=prove)
        nodes = set(found.nodes or ()) if chosen == "suggested" else set()
        result.layers.extend(
            layer_to_wire(
                layer, found.goal, chosen == "int16" or (bool(layer.model_node) and layer.model_node in nodes)
            )
            for layer in found.layers
        )
        if chosen:
            result.suggested.CopyFrom(plans[chosen])
        if "suggested" in plans and chosen != "suggested":
            note = not_the_mixed_plan(chosen, found.nodes or (), found.implied)
            result.findings.extend(compiler_convert.findings_to_wire([note]))
        result.findings.extend(compiler_convert.findings_to_wire(lost))
        result.findings.extend(compiler_convert.findings_to_wire(_findings(found)))
        for build in found.builds.values():
            result.findings.extend(otherwise_than_asked(build))
        return result

    async def _build_and_prove(self, form: Form, found: Sensitivity, pace: Pace) -> dict[str, Errors | StageFailure]:
        """Build the suggested plan; when the integer model misses a given target, climb to the next longer plan."""
        packed = pack_samples(form.calibration, list(range(form.counts[0])))
        calibration = await self._store.put_bytes(packed, "application/x-npz")
        if form.reference and not found.implied:
            found.aim_low(form, NEAR_MISS)
        for attempt in range(MOST_BUILDS):
            if "suggested" in found.specs:
                pace("build the suggested plan", 0.9 + 0.02 * attempt, attempt, MOST_BUILDS)
                variant = compiler_convert.spec_to_wire(found.specs["suggested"])
                found.builds["suggested"] = await self._builder.compile(form.model, variant, calibration)
            proven = await self._prove(form, found) if form.reference else {}
            got = proven.get("suggested")
            if found.implied or got is None or isinstance(got, StageFailure):
                break
            whole = proven.get("int16", got)
            if isinstance(whole, StageFailure) or not found.goal.reached(judge(found.goal, whole)[0], NEAR_MISS):
                break  # what int16 everywhere misses by far no part of it reaches
            if found.goal.reached(judge(found.goal, got)[0]) or attempt + 1 == MOST_BUILDS or not found.climb(form):
                break
        return proven

    async def _prove(self, form: Form, found: Sensitivity) -> dict[str, Errors | StageFailure]:
        numbers = list(range(form.counts[1]))
        digest = hashlib.sha256(pack_samples(form.heldout, numbers) + pack_samples(form.reference, numbers)).hexdigest()
        names = [p for p in PLANS if p in found.builds and not found.builds[p].HasField("failure")]
        wanted = []
        for name in names:
            ref = found.builds[name].quantized_model
            path = await self._store.fetch(ref)
            spec: CompileSpec = found.specs[name]
            wanted.append(Evaluation(path, ref.sha256, form.heldout, form.reference, digest, spec))
        return dict(zip(names, await self._evaluator.evaluate(wanted), strict=True))

    def _plan(self, name: str, found: Sensitivity, proven: Errors | StageFailure | None) -> explore_pb2.MixedPlan:
        emulated = {"int8": found.all_int8, "int16": found.all_int16}.get(name, found.emulated)
        goal, spec = found.goal, found.specs[name]
        value = judge(goal, emulated)[0]
        plan = explore_pb2.MixedPlan(
            variant=compiler_convert.spec_to_wire(spec),
            emulated=metric_figure(goal, value, EMULATION),
            int16_nodes=[n.node for n in spec.nodes if n.input_type == "int16"],
        )
        if proven is not None and not isinstance(proven, StageFailure):
            shown = judge(goal, proven)[0]
            plan.proven.CopyFrom(metric_figure(goal, shown, INTEGER_MODEL))
            value = value if found.implied else shown
        plan.reaches_target = goal.reached(value)
        return plan

    async def _add_latencies(self, plans: Mapping[str, explore_pb2.MixedPlan], found: Sensitivity) -> list[Finding]:
        """Add the builds' estimates to the plans; a plan without one is named in a finding."""
        lost = []
        for name, plan in plans.items():
            build = found.builds.get(name)
            if build is None:
                continue
            if build.HasField("failure"):
                lost.append(Finding(build.failure.code, "warning", f"Plan {name}: {build.failure.message}", name))
                continue
            described = await describe_build(build, self._store)
            if isinstance(described, StageFailure):
                lost.append(Finding(described.code, "warning", f"Plan {name}: {described.message}", name))
                continue
            plan.latency.CopyFrom(described.to_wire(self._source))
        return lost


def cheapest_reaching(plans: Mapping[str, explore_pb2.MixedPlan], built: bool) -> str:
    """Return the plan to suggest: of those that reach the target the fastest build; the mixed one without builds.

    A change of type between layers costs time too, so that int16 everywhere may be faster than a mixed plan. A build
    that failed or has no estimate is never suggested.
    """
    if not built:
        return "suggested" if "suggested" in plans else ""
    times = {
        name: next(f.value for f in plan.latency.figures if f.name == "board_ms")
        for name, plan in plans.items()
        if plan.reaches_target and plan.HasField("latency")
    }
    return min(times, key=lambda name: times[name]) if times else ""


def not_the_mixed_plan(chosen: str, nodes: Sequence[str], implied: bool) -> Finding:
    """Say why the mixed plan is not suggested.

    Args:
        chosen: The plan that is; empty when none reaches the target.
        nodes: Nodes that the mixed plan puts into int16.
        implied: True when no target was given.
    """
    if not chosen:
        text = "The emulation promised a mixed plan, and no build of one reaches the target as an integer model."
        return Finding("TARGET_NOT_PROVEN", "warning", text, "", "Lower the target, or try another calibration method.")
    goal = "is as good as asked of a mixed plan" if implied else "reaches the target"
    if chosen == "int8":
        text = f"int8 everywhere {goal}: nothing needs int16."
        return Finding("NO_INT16_NEEDED", "note", text, "", "Use int8.")
    if not nodes:
        return Finding("MIXED_PLAN_SLOWER", "note", f"{chosen} everywhere {goal} and is faster than int8.", "", "")
    text = f"{chosen} everywhere {goal} and is faster than the mixed plan: changing types costs time too."
    return Finding("MIXED_PLAN_SLOWER", "note", text, "", f"Use {chosen}.")


def _findings(found: Sensitivity) -> list[Finding]:
    notes = []
    for layer in clipped_layers(found.layers, found.goal):
        text = f"{layer.node}: int16 takes less than half of its error away; weights or clipping are the cause."
        remedy = "Try more calibration samples, another calibration method, or per-channel thresholds."
        notes.append(Finding("INT16_HELPS_LITTLE", "note", text, layer.node, remedy))
    goal = found.goal
    if found.implied and goal.target is not None:
        text = f"No target was given: plans are judged by {goal.metric} {goal.target:.6g} (simulated), {NEAR}."
        notes.append(Finding("TARGET_IMPLIED", "note", text, "", "Give the value that you need."))
    if found.nodes is None:
        text = (
            f"No plan reaches {goal.metric} {goal.target:g} in the emulation."
            if goal.target is not None
            else "No plan."
        )
        remedy = "Lower the target, or look at the layers that int16 does not help."
        notes.append(Finding("TARGET_OUT_OF_REACH", "warning", text, "", remedy))
    return notes
