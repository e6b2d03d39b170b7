"""Search for the best build: cheap previews on few samples first, real builds on all held-out samples for survivors.

Everything that costs time is stored by digest (builds in the compiler's results, evaluations beside them), so a search
that was interrupted goes on where it stopped, and a wider search reuses a narrower one.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from boardlift.v1 import artifact_pb2, compiler_pb2, explore_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.executions import Emitter

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.explore.build_variant import VariantBuilder
from boardlift_compiler.explore.conclude import Shown
from boardlift_compiler.explore.describe_build import BuildDescription, describe_build
from boardlift_compiler.explore.evaluate_builds import Evaluation, Evaluator
from boardlift_compiler.explore.judge import Goal, judge
from boardlift_compiler.explore.list_candidates import Candidate
from boardlift_compiler.explore.load_forms import Form, Samples
from boardlift_compiler.explore.plan_search import FINAL_LEVEL, Round, Score, choose_survivors
from boardlift_compiler.explore.sample_sets import count_samples, pack_samples, spread
from boardlift_compiler.spec import CompileSpec
from boardlift_compiler.track_progress import RunSize, predict_steps

EVALUATE_SECONDS = 3.0
"""What evaluating one build takes when nothing is known: the toolchain's imports and a few samples."""


@dataclass
class Standing:
    """How far a candidate came."""

    candidate: Candidate
    """The candidate."""
    rounds: int = 0
    """Rounds it took part in."""
    outcome: str = ""
    """dominated, misses-target, refused or finalist."""
    shown: Shown | None = None
    """What its last round showed."""
    description: BuildDescription | None = None
    """Its last build."""
    build: compiler_pb2.CompileResult | None = None
    """The same."""
    samples: int = 0
    """Held-out samples of its last round."""
    failure: StageFailure | None = None
    """Why its evaluation failed; a build's own failure is in the build."""


@dataclass
class SearchOutcome:
    """What a search showed."""

    standings: dict[str, Standing] = field(default_factory=dict)
    """Candidate name -> standing."""
    history: list[list[Shown]] = field(default_factory=list)
    """Per round what it showed."""
    seconds: list[float] = field(default_factory=list)
    """Wall time per round."""
    reused: list[int] = field(default_factory=list)
    """Stored builds per round."""


@dataclass(frozen=True)
class _RoundSamples:
    """Samples of one form in one round."""

    calibration: artifact_pb2.ArtifactRef
    heldout: Samples
    reference: Samples
    digest: str


@dataclass
class VariantSearch:
    """Runs the rounds of one search."""

    builder: VariantBuilder
    """Builds."""
    evaluator: Evaluator
    """Evaluates builds."""
    store: ArtifactStore
    """Where artifacts are."""
    forms: dict[str, Form]
    """Forms by name."""
    goal: Goal
    """What candidates are judged by."""
    emitter: Emitter
    """Where progress goes."""

    async def run(self, candidates: Sequence[Candidate], rounds: Sequence[Round]) -> SearchOutcome:
        """Run all rounds."""
        outcome = SearchOutcome({c.name: Standing(c) for c in candidates})
        costs = [self.predict(candidates[: r.candidates], r)[0] for r in rounds]
        names = [c.name for c in candidates]
        for number, current in enumerate(rounds):
            before, share = sum(costs[:number]) / sum(costs), costs[number] / sum(costs)
            started, reused = time.monotonic(), self.builder.reused
            shown = await self._round(number, current, [outcome.standings[n] for n in names], before, share)
            outcome.history.append(shown)
            outcome.seconds.append(round(time.monotonic() - started, 3))
            outcome.reused.append(self.builder.reused - reused)
            if number + 1 < len(rounds):
                names = self._survivors(shown, rounds[number + 1].candidates, outcome)
            else:
                for item in shown:
                    outcome.standings[item.score.name].outcome = "finalist"
        return outcome

    def predict(self, candidates: Sequence[Candidate], current: Round) -> tuple[float, bool]:
        """Predict the seconds of a round, and whether past runs of similar size are known for all of it."""
        total, all_known = 0.0, True
        for candidate in candidates:
            form, spec = self.forms[candidate.form], candidate.spec
            size = RunSize(
                len(form.summary.nodes), form.model_bytes, current.calibration, spec.calibration.method or "default",
                current.level, spec.wants_int16 or spec.preset == "int16",
            )  # fmt: skip
            steps, known = predict_steps(size, self.builder.runner.history.runs)
            total += sum(steps.values())
            all_known = all_known and known
        return total / max(self.builder.executions.slots, 1) + EVALUATE_SECONDS, all_known

    def _survivors(self, shown: Sequence[Shown], keep: int, outcome: SearchOutcome) -> list[str]:
        names = choose_survivors([s.score for s in shown], keep, self.goal)
        for item in shown:
            if item.score.name not in names:
                missed = not self.goal.reached(item.score.value)
                outcome.standings[item.score.name].outcome = "misses-target" if missed else "dominated"
        return names

    async def _round(
        self, number: int, current: Round, standings: Sequence[Standing], before: float, share: float
    ) -> list[Shown]:
        """Build and evaluate everybody; candidates that fail are marked and left out."""
        step = f"round {number + 1}: {len(standings)} builds at {current.level}"
        self.emitter.log(f"{step}, {current.calibration} calibration and {current.heldout} held-out samples", "search")
        samples = {name: await self._samples(form, current) for name, form in self.forms.items()}
        done = 0

        async def build(standing: Standing) -> None:
            nonlocal done
            await self._build(standing, current, samples[standing.candidate.form])
            done += 1
            self.emitter.progress(step, before + 0.8 * share * done / len(standings), done, len(standings))

        await asyncio.gather(*(build(s) for s in standings))
        alive = [s for s in standings if s.outcome != "refused"]
        evaluations = [await self._evaluation(s, samples[s.candidate.form]) for s in alive]
        self.emitter.progress("evaluate", before + 0.8 * share, 0, len(alive))
        errors = await self.evaluator.evaluate(evaluations)
        shown = []
        for standing, result in zip(alive, errors, strict=True):
            standing.rounds, standing.samples = number + 1, current.heldout
            if isinstance(result, StageFailure):
                standing.outcome, standing.failure = "refused", result
                continue
            value = judge(self.goal, result)[0]
            standing.shown = _show(standing, value, current.level, number)
            shown.append(standing.shown)
            self.emitter.log(standing.shown.text(self.goal), "search")
        return shown

    async def _samples(self, form: Form, current: Round) -> _RoundSamples:
        calibration = spread(count_samples(form.calibration), current.calibration)
        heldout = spread(count_samples(form.heldout), current.heldout)
        packed = await asyncio.to_thread(pack_samples, form.calibration, calibration)
        digest = hashlib.sha256()
        for samples in (form.heldout, form.reference):
            digest.update(await asyncio.to_thread(pack_samples, samples, heldout))
        return _RoundSamples(
            await self.store.put_bytes(packed, "application/x-npz"),
            {name: array[heldout] for name, array in form.heldout.items()},
            {name: array[heldout] for name, array in form.reference.items()},
            digest.hexdigest(),
        )

    async def _build(self, standing: Standing, current: Round, samples: _RoundSamples) -> None:
        spec = at_level(standing.candidate.spec, current)
        form = self.forms[standing.candidate.form]
        result = await self.builder.compile(form.model, compiler_convert.spec_to_wire(spec), samples.calibration)
        standing.build = result
        if result.HasField("failure"):
            standing.outcome = "refused"
            return
        described = await describe_build(result, self.store)
        if isinstance(described, StageFailure):
            standing.outcome, standing.failure = "refused", described
            return
        standing.description = described

    async def _evaluation(self, standing: Standing, samples: _RoundSamples) -> Evaluation:
        ref = (standing.build or compiler_pb2.CompileResult()).quantized_model
        return Evaluation(
            await self.store.fetch(ref),
            ref.sha256,
            samples.heldout,
            samples.reference,
            samples.digest,
            standing.candidate.spec,
        )


def at_level(spec: CompileSpec, current: Round) -> CompileSpec:
    """Return the spec as a round builds it; the last round keeps what the user would get at the search level."""
    purpose = "search" if current.level == FINAL_LEVEL else "preview"
    return replace(spec, name="", purpose=purpose, compiler=replace(spec.compiler, optimize_level=current.level))


def _show(standing: Standing, value: float, level: str, number: int) -> Shown:
    candidate, description = standing.candidate, standing.description
    if description is None:
        raise ValueError("a build that is shown has been described")
    estimate = description.estimate
    score = Score(candidate.name, candidate.form, value, estimate.board_ms)
    return Shown(score, candidate.plan, estimate.bpu_subgraphs, estimate.bpu_us, level, number)


def rounds_to_wire(
    rounds: Sequence[Round], predicted: Sequence[float], outcome: SearchOutcome | None
) -> list[explore_pb2.SearchRound]:
    """Write the rounds; without an outcome as they would be."""
    return [
        explore_pb2.SearchRound(
            optimize_level=r.level,
            candidates=r.candidates,
            calibration_samples=r.calibration,
            heldout_samples=r.heldout,
            predicted_seconds=round(predicted[k], 1),
            seconds=outcome.seconds[k] if outcome else 0.0,
            reused=outcome.reused[k] if outcome else 0,
        )
        for k, r in enumerate(rounds)
    ]
