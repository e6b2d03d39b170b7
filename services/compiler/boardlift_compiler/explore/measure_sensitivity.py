"""Measure what quantisation does to each layer, suggest a mixed plan and prove it with a real build."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from boardlift.v1 import artifact_pb2, compiler_pb2, toolchain_pb2
from boardlift_servicekit.artifacts import ArtifactStore

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.explore.build_variant import VariantBuilder, file_of
from boardlift_compiler.explore.choose_plan import (
    Layer,
    build_ladder,
    first_reaching,
    implied_target,
    layer_costs,
    model_node_of,
    rank_layers,
    rungs,
)
from boardlift_compiler.explore.convert import layer_times
from boardlift_compiler.explore.evaluate_builds import BATCH, prepare_inputs
from boardlift_compiler.explore.judge import Errors, Goal, judge
from boardlift_compiler.explore.list_candidates import apply_plan, without_precision
from boardlift_compiler.explore.load_forms import Form
from boardlift_compiler.explore.remember import Memory, digest_of
from boardlift_compiler.explore.sample_sets import count_samples, pack_samples, spread
from boardlift_compiler.run_folder import RunFolder, run_folder
from boardlift_compiler.run_vendor import run_vendor_program
from boardlift_compiler.spec import CompileSpec

PROGRAM = "measure_layers.py"
DEFAULT_SAMPLES = 16


@dataclass
class Sensitivity:
    """What was found. Simulated, but for the builds' estimates."""

    failure: StageFailure | None = None
    """Why there is nothing."""
    wire_failure: toolchain_pb2.StageFailure | None = None
    """The same, when it came from a build."""
    goal: Goal = field(default_factory=Goal)
    """The goal with its target, given or implied."""
    implied: bool = False
    """True when the target was taken from the emulation, so that only the emulation is judged by it."""
    layers: list[Layer] = field(default_factory=list)
    """Layers, most sensitive first."""
    all_int8: Errors = field(default_factory=dict)
    """Emulation, everything in int8."""
    all_int16: Errors = field(default_factory=dict)
    """Emulation, all activations in int16."""
    ladder: Sequence[str] = ()
    """Nodes, best gain per cost first; a plan is a leading part of it."""
    rungs: Sequence[tuple[int, Errors]] = ()
    """Plans that were emulated: length and errors."""
    chosen: int | None = None
    """Position in `rungs` of the suggested plan; None when no plan reaches the target."""
    specs: dict[str, CompileSpec] = field(default_factory=dict)
    """Plan -> spec: int8, int16, suggested."""
    builds: dict[str, compiler_pb2.CompileResult] = field(default_factory=dict)
    """Plan -> build."""
    samples: int = 0
    """Samples of the per-layer runs."""

    @property
    def refusal(self) -> toolchain_pb2.StageFailure | None:
        """Why there is nothing, as it goes over the wire; None when there is something."""
        if self.failure is not None:
            return compiler_convert.failure_to_wire(self.failure)
        return self.wire_failure

    @property
    def nodes(self) -> tuple[str, ...] | None:
        """Nodes of the suggested plan; None when there is none."""
        return None if self.chosen is None else tuple(self.ladder[: self.rungs[self.chosen][0]])

    @property
    def emulated(self) -> Errors:
        """Emulation of the suggested plan; empty when there is none."""
        return {} if self.chosen is None else self.rungs[self.chosen][1]

    def suggest(self, form: Form) -> None:
        """Write the spec of the suggested plan."""
        if self.nodes is not None:
            self.specs["suggested"] = apply_plan(self.specs["int8"], "suggested", form.summary, self.nodes)

    def aim_low(self, form: Form, slack: float) -> None:
        """Suggest the first plan whose emulation misses the target by no more than a share of its loss.

        The emulation sees few samples; where a plan is built anyway, a near miss deserves its build.
        """
        near = (k for k, (_, errors) in enumerate(self.rungs) if self.goal.reached(judge(self.goal, errors)[0], slack))
        self.chosen = next(near, self.chosen)
        self.suggest(form)

    def climb(self, form: Form) -> bool:
        """Suggest the next longer plan; False when there is none."""
        if self.chosen is None or self.chosen + 1 >= len(self.rungs):
            return False
        self.chosen += 1
        self.suggest(form)
        return True


@dataclass(frozen=True)
class SensitivityRun:
    """Measures one form."""

    builder: VariantBuilder
    """Builds."""
    store: ArtifactStore
    """Where artifacts are."""
    memory: Memory
    """Where measurements are kept."""
    on_progress: Any
    """Called with (step, fraction, done, total)."""

    async def measure(self, form: Form, base: CompileSpec, goal: Goal, samples: int) -> Sensitivity:
        """Measure layers and choose a plan; a refusal is an outcome, not an exception.

        Args:
            form: The model with samples.
            base: How it is compiled; precision words are taken away.
            goal: What the plan must reach.
            samples: Held-out samples to measure on.
        """
        found = Sensitivity(goal=goal)
        plain = searching(without_precision(base))
        for plan in ("int8", "int16"):
            found.specs[plan] = apply_plan(plain, plan, form.summary)
        self.on_progress("build int8 and int16", 0.02, 0, 2)
        calibration = await self.store.put_bytes(
            pack_samples(form.calibration, list(range(form.counts[0]))), "application/x-npz"
        )
        results = await asyncio.gather(
            *(self.builder.compile(form.model, compiler_convert.spec_to_wire(found.specs[p]), calibration)
              for p in ("int8", "int16"))
        )  # fmt: skip
        found.builds = dict(zip(("int8", "int16"), results, strict=True))
        if results[0].HasField("failure"):
            found.wire_failure = results[0].failure
            return found
        calibrated = file_of(results[0], "calibrated_model.onnx")
        if calibrated is None:
            found.failure = make_failure("SIMULATION_FAILED", "the build left no calibrated model")
            return found
        numbers = spread(count_samples(form.heldout), samples or DEFAULT_SAMPLES)
        found.samples = len(numbers)
        with run_folder(self.builder.runner.work_root) as folder:
            path = await self.store.fetch(calibrated)
            chosen = {name: array[numbers] for name, array in form.heldout.items()}
            found.failure = await asyncio.to_thread(prepare_inputs, path, chosen, plain, folder.path / "inputs.npz")
            if found.failure is None:
                await self._measure_layers(form, calibrated, folder, found)
            if found.failure is None:
                await self._choose(form, calibrated, folder, found)
        return found

    async def _run(
        self, model: artifact_pb2.ArtifactRef, folder: RunFolder, step: str, start: float, **more: object
    ) -> Any:
        def report(message: Any) -> None:
            done, total = message.get("progress", (0, 1))
            self.on_progress(step, start + 0.35 * done / max(total, 1), done, total)

        inputs = folder.path / "inputs.npz"
        samples = await asyncio.to_thread(inputs.read_bytes)
        key = digest_of("layers", model.sha256, samples, json.dumps(more, sort_keys=True))
        known = await asyncio.to_thread(self.memory.recall, key)
        if known is not None:
            return known
        path = await self.store.fetch(model)
        request = {"model": str(path), "inputs": str(inputs), "batch": BATCH, **more}
        answer = await run_vendor_program(self.builder.runner.toolchain, PROGRAM, request, folder, report)
        if not isinstance(answer, StageFailure):
            await asyncio.to_thread(self.memory.keep, key, answer)
        return answer

    async def _measure_layers(
        self, form: Form, model: artifact_pb2.ArtifactRef, folder: RunFolder, found: Sensitivity
    ) -> None:
        answer = await self._run(model, folder, "measure layers", 0.25, layers=True)
        if isinstance(answer, StageFailure):
            found.failure = answer
            return
        found.all_int8, found.all_int16 = answer["all_int8"], answer["all_int16"]
        found.implied = found.goal.target is None
        found.goal = implied_target(found.goal, found.all_int8, found.all_int16)
        names = [n.name for n in form.summary.nodes if n.name]
        costs: dict[str, float] = {}
        if not found.builds["int16"].HasField("failure"):
            costs = layer_costs(layer_times(found.builds["int8"]), layer_times(found.builds["int16"]))
        layers = [
            Layer(
                item["node"],
                item["type"],
                model_node_of(item["node"], names),
                item["single_int8"],
                item["single_int16"],
                item["cumulative"],
                costs.get(item["node"]),
            )
            for item in answer["layers"]
        ]
        found.layers = rank_layers(layers, found.goal)

    async def _choose(self, form: Form, model: artifact_pb2.ArtifactRef, folder: RunFolder, found: Sensitivity) -> None:
        ladder = build_ladder(found.layers, found.goal)
        lengths = rungs(len(ladder.order))
        emulated: Sequence[Errors] = []
        if lengths:
            plans = [ladder.layers_of(length) for length in lengths]
            answer = await self._run(model, folder, "emulate plans", 0.6, plans=plans)
            if isinstance(answer, StageFailure):
                found.failure = answer
                return
            emulated = answer["plans"]
        found.ladder = ladder.order
        found.rungs = list(zip([0, *lengths], [found.all_int8, *emulated], strict=True))
        found.chosen = first_reaching(found.goal, [errors for _, errors in found.rungs])
        found.suggest(form)


def searching(spec: CompileSpec) -> CompileSpec:
    """Return the spec with the level and the calibration method of a search, where they are left open."""
    return replace(spec, purpose="search", name="")
