"""Predict what a search will cost before it starts: only what is not stored already has to run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from boardlift.v1 import artifact_pb2
from boardlift_servicekit.artifacts import ArtifactStore

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.explore.build_variant import VariantBuilder
from boardlift_compiler.explore.learn_rounds import RoundTimes
from boardlift_compiler.explore.list_candidates import Candidate
from boardlift_compiler.explore.load_forms import Form
from boardlift_compiler.explore.plan_search import FINAL_LEVEL, Round
from boardlift_compiler.explore.sample_sets import count_samples, pack_samples, spread
from boardlift_compiler.spec import CompileSpec
from boardlift_compiler.track_progress import RunSize, predict_steps

EVALUATE = "evaluate"
"""Kind of work beside the levels of builds."""
IMPORT_SECONDS, EVALUATION_SECONDS, SAMPLE_SECONDS = 3.0, 0.3, 0.01
"""Evaluating a round: the toolchain's imports once, a session per build, its samples; a policy's, until learnt."""


@dataclass(frozen=True)
class RoundCost:
    """What a round will cost. Estimated."""

    seconds: float
    """Wall time."""
    known: bool
    """True when every build is stored, or something of similar size has run before."""
    stored: int
    """Candidates whose build of this round is stored."""


@dataclass(frozen=True)
class SearchForecast:
    """Predicts the rounds of a search."""

    builder: VariantBuilder
    """Knows what is built."""
    store: ArtifactStore
    """Where calibration samples go."""
    forms: Mapping[str, Form]
    """Forms by name."""
    times: RoundTimes
    """What past rounds took against what was reckoned."""

    async def predict(self, candidates: Sequence[Candidate], rounds: Sequence[Round]) -> list[RoundCost]:
        """Predict every round. Who survives is not known yet: later rounds are reckoned with the mean candidate."""
        return [await self._predict(candidates, current) for current in rounds]

    async def _predict(self, candidates: Sequence[Candidate], current: Round) -> RoundCost:
        samples = {name: await self.calibration(form, current) for name, form in self.forms.items()}
        fresh = [c for c in candidates if not await self._is_built(c, current, samples[c.form])]
        reckoned = [self.reckon_build(c, current) for c in fresh]
        stored = len(candidates) - len(fresh)
        count = max(min(current.candidates, len(candidates)) - stored, 0)
        if not count or not fresh:
            return RoundCost(0.0, True, stored)
        builds = math.fsum(s for s, _ in reckoned) * count / len(fresh) / max(self.builder.executions.slots, 1)
        seconds = builds * self.times.factor(current.level)
        seconds += reckon_evaluation(count, current.heldout) * self.times.factor(EVALUATE)
        return RoundCost(seconds, all(known for _, known in reckoned), stored)

    def reckon_build(self, candidate: Candidate, current: Round) -> tuple[float, bool]:
        """Return the seconds of the tool's steps for one build, and whether past runs of similar size are known."""
        form, spec = self.forms[candidate.form], candidate.spec
        size = RunSize(
            len(form.summary.nodes), form.model_bytes, current.calibration, spec.calibration.method or "default",
            current.level, spec.wants_int16 or spec.preset == "int16",
        )  # fmt: skip
        steps, known = predict_steps(size, self.builder.runner.history.runs)
        return math.fsum(steps.values()), known

    def reckon_sensitivity(self, form: str, spec: CompileSpec) -> float:
        """Return about how many seconds a sensitivity measurement takes: three builds and some runs. Estimated."""
        samples = self.forms[form].counts[0]
        current = Round(FINAL_LEVEL, 1, samples, samples)
        spec = spec.with_calibration(method=spec.calibration.method or "max")
        build, _ = self.reckon_build(Candidate("", form, "", spec), current)
        builds = 3 * build / max(self.builder.executions.slots, 1) * self.times.factor(FINAL_LEVEL)
        return builds + 3 * reckon_evaluation(1, samples) * self.times.factor(EVALUATE)

    async def calibration(self, form: Form, current: Round) -> artifact_pb2.ArtifactRef:
        """Store the calibration samples of a round."""
        chosen = spread(count_samples(form.calibration), current.calibration)
        return await self.store.put_bytes(pack_samples(form.calibration, chosen), "application/x-npz")

    async def _is_built(self, candidate: Candidate, current: Round, samples: artifact_pb2.ArtifactRef) -> bool:
        variant = compiler_convert.spec_to_wire(at_level(candidate.spec, current))
        return await self.builder.is_built(self.forms[candidate.form].model, variant, samples)


def reckon_evaluation(builds: int, heldout: int) -> float:
    """Return the seconds of evaluating some builds on some samples, before what was learnt corrects it."""
    return IMPORT_SECONDS + builds * (EVALUATION_SECONDS + SAMPLE_SECONDS * heldout) if builds else 0.0


def at_level(spec: CompileSpec, current: Round) -> CompileSpec:
    """Return the spec as a round builds it; the last round keeps what the user would get at the search level."""
    purpose = "search" if current.level == FINAL_LEVEL else "preview"
    return replace(spec, name="", purpose=purpose, compiler=replace(spec.compiler, optimize_level=current.level))
