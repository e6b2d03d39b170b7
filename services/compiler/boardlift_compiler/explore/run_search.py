"""Search for the best build: cheap previews on few samples first, real builds on all held-out samples for survivors.

Everything that costs time is stored by digest (builds in the compiler's results, evaluations beside them), so a search
that was interrupted goes on where it stopped, and a wider search reuses a narrower one.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from boardlift.v1 import artifact_pb2, compiler_pb2, explore_pb2
from boardlift_servicekit.artifacts import ArtifactStore
from boardlift_servicekit.executions import Emitter

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.explore.build_variant import VariantBuilder
from boardlift_compiler.explore.conclude import Shown
from boardlift_compiler.explore.describe_build import BuildDescription, describe_build
from boardlift_compiler.explore.evaluate_builds import Evaluation, Evaluator
from boardlift_compiler.explore.judge import Errors, Goal, judge
from boardlift_compiler.explore.list_candidates import Candidate
from boardlift_compiler.explore.load_forms import Form, Samples
from boardlift_compiler.explore.plan_search import Round, Score, choose_survivors
from boardlift_compiler.explore.predict_search import (
    EVALUATE,
    RoundCost,
    SearchForecast,
    at_level,
    reckon_evaluation,
)
from boardlift_compiler.explore.sample_sets import count_samples, pack_samples, spread
from boardlift_compiler.explore.tell_remaining import Pace

BUILD_SHARE = 0.8
"""Share of a round that its builds take; the rest is evaluation."""
LEAST_SECONDS = 0.1


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
class _Part:
    """A round's part of the whole search."""

    pace: Pace
    before: float
    share: float

    def report(self, step: str, fraction: float, done: int, total: int) -> None:
        self.pace(step, self.before + self.share * fraction, done, total)


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
    forecast: SearchForecast
    """Says what rounds cost, and learns from them."""

    async def run(
        self, candidates: Sequence[Candidate], rounds: Sequence[Round], predicted: Sequence[RoundCost]
    ) -> SearchOutcome:
        """Run all rounds; `predicted` says what each will cost."""
        outcome = SearchOutcome({c.name: Standing(c) for c in candidates})
        costs = [max(cost.seconds, LEAST_SECONDS) for cost in predicted]
        pace = Pace(self.emitter, sum(costs))
        names = [c.name for c in candidates]
        for number, current in enumerate(rounds):
            part = _Part(pace, sum(costs[:number]) / sum(costs), costs[number] / sum(costs))
            started, reused = time.monotonic(), self.builder.reused
            shown = await self._round(number, current, [outcome.standings[n] for n in names], part)
            outcome.history.append(shown)
            outcome.seconds.append(round(time.monotonic() - started, 3))
            outcome.reused.append(self.builder.reused - reused)
            if number + 1 < len(rounds):
                names = self._survivors(shown, rounds[number + 1].candidates, outcome)
            else:
                for item in shown:
                    outcome.standings[item.score.name].outcome = "finalist"
        return outcome

    def _survivors(self, shown: Sequence[Shown], keep: int, outcome: SearchOutcome) -> list[str]:
        names = choose_survivors([s.score for s in shown], keep, self.goal)
        for item in shown:
            if item.score.name not in names:
                missed = not self.goal.reached(item.score.value)
                outcome.standings[item.score.name].outcome = "misses-target" if missed else "dominated"
        return names

    async def _round(self, number: int, current: Round, standings: Sequence[Standing], part: _Part) -> list[Shown]:
        """Build and evaluate everybody; candidates that fail are marked and left out."""
        step = f"round {number + 1}: {len(standings)} builds at {current.level}"
        self.emitter.log(f"{step}, {current.calibration} calibration and {current.heldout} held-out samples", "search")
        samples = {name: await self._samples(form, current) for name, form in self.forms.items()}
        done = 0
        part.report(step, 0.0, 0, len(standings))

        async def build(standing: Standing) -> None:
            nonlocal done
            await self._build(standing, current, samples[standing.candidate.form])
            done += 1
            part.report(step, BUILD_SHARE * done / len(standings), done, len(standings))

        started = time.monotonic()
        await asyncio.gather(*(build(s) for s in standings))
        self._learn_builds(current, standings, time.monotonic() - started)
        alive = [s for s in standings if s.outcome != "refused"]
        evaluations = [await self._evaluation(s, samples[s.candidate.form]) for s in alive]
        errors = await self._evaluate(evaluations, current, part)
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

    def _learn_builds(self, current: Round, standings: Sequence[Standing], took_s: float) -> None:
        ran = [s.candidate for s in standings if s.build is not None and not s.build.execution.cached]
        reckoned = math.fsum(self.forecast.reckon_build(c, current)[0] for c in ran)
        self.forecast.times.add(current.level, reckoned / max(self.builder.executions.slots, 1), took_s)

    async def _evaluate(
        self, evaluations: Sequence[Evaluation], current: Round, part: _Part
    ) -> list[Errors | StageFailure]:
        def advance(done: int, total: int) -> None:
            share = BUILD_SHARE + (1 - BUILD_SHARE) * done / max(total, 1)
            part.report(f"evaluate on {current.heldout} held-out samples", share, done, total)

        advance(0, len(evaluations))
        started, ran = time.monotonic(), self.evaluator.ran
        errors = await self.evaluator.evaluate(evaluations, advance)
        reckoned = reckon_evaluation(self.evaluator.ran - ran, current.heldout)
        self.forecast.times.add(EVALUATE, reckoned, time.monotonic() - started)
        return errors

    async def _samples(self, form: Form, current: Round) -> _RoundSamples:
        heldout = spread(count_samples(form.heldout), current.heldout)
        digest = hashlib.sha256()
        for samples in (form.heldout, form.reference):
            digest.update(await asyncio.to_thread(pack_samples, samples, heldout))
        return _RoundSamples(
            await self.forecast.calibration(form, current),
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


def _show(standing: Standing, value: float, level: str, number: int) -> Shown:
    candidate, description = standing.candidate, standing.description
    if description is None:
        raise ValueError("a build that is shown has been described")
    estimate = description.estimate
    score = Score(candidate.name, candidate.form, value, estimate.board_ms)
    return Shown(score, candidate.plan, estimate.bpu_subgraphs, estimate.bpu_us, level, number)


def rounds_to_wire(
    rounds: Sequence[Round], predicted: Sequence[RoundCost], outcome: SearchOutcome | None
) -> list[explore_pb2.SearchRound]:
    """Write the rounds; without an outcome as they would be."""
    return [
        explore_pb2.SearchRound(
            optimize_level=r.level,
            candidates=r.candidates,
            calibration_samples=r.calibration,
            heldout_samples=r.heldout,
            predicted_seconds=round(predicted[k].seconds, 1),
            seconds=outcome.seconds[k] if outcome else 0.0,
            reused=outcome.reused[k] if outcome else min(predicted[k].stored, r.candidates),
        )
        for k, r in enumerate(rounds)
    ]
