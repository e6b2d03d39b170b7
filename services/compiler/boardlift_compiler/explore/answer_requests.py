"""Turn the requests of `ExploreService` into work, and what came out into results."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boardlift.errors import InvalidInputError
from boardlift.v1 import explore_pb2, toolchain_pb2
from boardlift_servicekit.executions import Emitter, Executions
from google.protobuf.message import Message

from boardlift_compiler import convert as compiler_convert
from boardlift_compiler.explore.build_variant import VariantBuilder
from boardlift_compiler.explore.convert import goal_from_wire
from boardlift_compiler.explore.evaluate_builds import Evaluator
from boardlift_compiler.explore.judge import Goal, GoalError
from boardlift_compiler.explore.learn_rounds import RoundTimes
from boardlift_compiler.explore.list_candidates import MAX_CANDIDATES, Candidate, CandidateError, list_candidates
from boardlift_compiler.explore.load_forms import Form, FormRefusedError, SharedSamples, load_form
from boardlift_compiler.explore.measure_sensitivity import Sensitivity, SensitivityRun, searching
from boardlift_compiler.explore.plan_search import plan_rounds
from boardlift_compiler.explore.predict_search import SearchForecast
from boardlift_compiler.explore.remember import Memory
from boardlift_compiler.explore.report_search import candidate_to_wire, left_out, write_outcome
from boardlift_compiler.explore.report_sensitivity import SensitivityReport
from boardlift_compiler.explore.run_search import Standing, VariantSearch, rounds_to_wire
from boardlift_compiler.explore.tell_remaining import Pace
from boardlift_compiler.explore.try_remedies import RemedyRun
from boardlift_compiler.read_model import ModelUnreadableError, read_model
from boardlift_compiler.run_stages import StageRunner, require_target

MAX_SAMPLES, MAX_FACTOR, MAX_FINALISTS = 4096, 10, 64


class Explorer:
    """Answers one request; makes builder and evaluator for it."""

    def __init__(
        self, runner: StageRunner, builds: Executions[Any], key: Callable[[str, Message], str], folder: Path
    ) -> None:
        """Prepare; `folder` holds what is remembered from one request to the next."""
        self._runner, self._store = runner, runner.store
        self._builder = VariantBuilder(runner, builds, key)
        self._memory = Memory(folder / "evaluations", key("remembered", explore_pb2.Goal()))
        self._times = RoundTimes(folder / "rounds.json")
        self._evaluator = Evaluator(runner.toolchain, runner.work_root, self._memory)

    async def answer(self, stage: str, request: Any, emitter: Emitter) -> Message:
        """Do the work of a stage."""
        require_target(request.target)
        work: dict[str, Callable[[Any, Emitter], Any]] = {
            "sensitivity": self._sensitivity,
            "search": self._search,
            "remedies": self._remedies,
        }
        result: Any = await work[stage](request, emitter)
        result.execution.tools.append(compiler_convert.tool_to_wire(self._runner.toolchain))
        return result  # type: ignore[no-any-return]  # each handler returns its stage's result message

    async def _sensitivity(
        self, request: explore_pb2.MeasureSensitivityRequest, emitter: Emitter
    ) -> explore_pb2.SensitivityResult:
        goal = goal_from_wire(request.goal)
        _check_range("samples", request.samples, 0, MAX_SAMPLES)
        shared = SharedSamples(request.calibration, request.heldout, request.reference_outputs)
        message = explore_pb2.ModelForm(name="model", model=request.model)
        try:
            form = await load_form(message, shared, self._store)
        except FormRefusedError as error:
            return explore_pb2.SensitivityResult(failure=compiler_convert.failure_to_wire(error.failure))
        _check_output(goal, [form])
        base = compiler_convert.spec_from_wire(request.variant)
        forecast = SearchForecast(self._builder, self._store, {form.name: form}, self._times)
        pace = Pace(emitter, forecast.reckon_sensitivity(form.name, searching(base)))
        run = SensitivityRun(self._builder, self._store, self._memory, pace)
        found = await _judged(run.measure(form, base, goal, request.samples))
        report = SensitivityReport(self._builder, self._evaluator, self._store)
        return await report.write(form, found, prove=not request.no_proof, pace=pace)

    async def _remedies(self, request: explore_pb2.TryRemediesRequest, emitter: Emitter) -> explore_pb2.RemedyResult:
        level = request.optimize_level or "O1"
        if level not in ("O1", "O2"):
            raise InvalidInputError(
                "Remedies are tried at O1 or O2.",
                reason="KNOB_RANGE",
                remedy="Leave the level out, or ask for O1 or O2.",
                metadata={"field": "optimize_level"},
            )
        path = await self._store.fetch(request.form.model)
        try:
            model = await asyncio.to_thread(lambda: read_model(path.read_bytes()))
        except ModelUnreadableError as error:
            raise InvalidInputError(
                f"This is no ONNX model: {error}.",
                reason="MODEL_UNREADABLE",
                remedy="Check that the file loads with onnx.load.",
                metadata={"field": "form.model"},
            ) from error
        spec = compiler_convert.spec_from_wire(request.variant)
        knobs = replace(spec.compiler, optimize_level=level)
        spec = replace(spec, name="", purpose="preview" if level == "O1" else "search", compiler=knobs)
        return await RemedyRun(self._builder, self._store, emitter, request).run(model, spec)

    async def _search(self, request: explore_pb2.SearchVariantsRequest, emitter: Emitter) -> explore_pb2.SearchResult:
        goal = goal_from_wire(request.goal)
        check_search(request)
        shared = SharedSamples(request.calibration, request.heldout, request.reference_outputs)
        try:
            loaded = [await load_form(f, shared, self._store) for f in request.forms]
        except FormRefusedError as error:
            return explore_pb2.SearchResult(failure=compiler_convert.failure_to_wire(error.failure))
        _check_output(goal, loaded)
        forms = {form.name: form for form in loaded}
        candidates, refused = await self._candidates(request, loaded, goal, emitter)
        if not candidates and refused:
            return explore_pb2.SearchResult(failure=next(iter(refused.values())))
        forecast = SearchForecast(self._builder, self._store, forms, self._times)
        rounds = plan_rounds(
            len(candidates),
            min(f.counts[0] for f in loaded),
            min(f.counts[1] for f in loaded),
            forms=len(loaded),
            first=request.first_samples or 8,
            factor=request.factor or 3,
            finalists=request.finalists or 6,
        )
        costs = await forecast.predict(candidates, rounds)
        seconds = math.fsum(cost.seconds for cost in costs)
        result = explore_pb2.SearchResult(
            predicted_seconds=round(seconds, 1),
            prediction_known=all(cost.known for cost in costs),
            dry_run=request.dry_run,
            findings=compiler_convert.findings_to_wire(left_out(form, why) for form, why in refused.items()),
        )
        emitter.log(f"{len(candidates)} candidates, {len(rounds)} rounds, about {seconds:.0f} s", "search")
        if request.dry_run:
            result.rounds.extend(rounds_to_wire(rounds, costs, None))
            result.candidates.extend(candidate_to_wire(Standing(c), goal, "", False) for c in candidates)
            return result
        search = VariantSearch(self._builder, self._evaluator, self._store, forms, goal, emitter, forecast)
        outcome = await _judged(search.run(candidates, rounds, costs))
        result.rounds.extend(rounds_to_wire(rounds, costs, outcome))
        write_outcome(result, outcome, loaded[0].name, goal, f"hb_mapper {self._runner.toolchain.version}")
        return result

    async def _candidates(
        self, request: explore_pb2.SearchVariantsRequest, forms: Sequence[Form], goal: Goal, emitter: Emitter
    ) -> tuple[list[Candidate], dict[str, toolchain_pb2.StageFailure]]:
        """Return the candidates, and per form why its layers could not be measured for the suggested plan."""
        base = compiler_convert.spec_from_wire(request.base)
        variants = [compiler_convert.spec_from_wire(v) for v in request.variants]
        found: list[Candidate] = []
        refused: dict[str, toolchain_pb2.StageFailure] = {}
        for form in forms:
            suggested: Sequence[str] = ()
            if "suggested" in request.plans and not request.dry_run:
                run = SensitivityRun(self._builder, self._store, self._memory, Pace(emitter))
                measured: Sensitivity = await _judged(run.measure(form, base, goal, 0))
                suggested = measured.nodes or ()
                if measured.refusal is not None:
                    refused[form.name] = measured.refusal
                else:
                    text = ", ".join(suggested) or "none, so this plan is left out"
                    emitter.log(f"{form.name}: nodes that the measurement suggests for int16: {text}", "search")
            try:
                found += list_candidates(
                    form.name, form.summary, base, request.plans, request.methods, variants, suggested
                )
            except CandidateError as error:
                raise InvalidInputError(
                    f"{error}.",
                    reason="CANDIDATE_INVALID",
                    remedy="Correct the plan or variant that it names.",
                    metadata={"field": "plans"},
                ) from error
        if not (found or refused) or len(found) > MAX_CANDIDATES:
            raise InvalidInputError(
                f"{len(found)} candidates; between 1 and {MAX_CANDIDATES} can be searched.",
                reason="CANDIDATE_COUNT",
                remedy="Name fewer plans, methods or forms.",
            )
        return found, refused


async def _judged(work: Any) -> Any:
    """Await work that judges outputs; a goal that does not fit the model is the caller's mistake."""
    try:
        return await work
    except GoalError as error:
        raise _goal_invalid(str(error)) from error


def _check_output(goal: Goal, forms: Sequence[Form]) -> None:
    """Refuse an output that no form has before anything is built for it."""
    for form in forms:
        if goal.output and goal.output not in {o.name for o in form.summary.outputs}:
            raise _goal_invalid(f"form {form.name} has no output {goal.output[:80]!r}")


def _goal_invalid(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"{text}.",
        reason="GOAL_INVALID",
        remedy="Name a metric and an output that the model has.",
        metadata={"field": "goal"},
    )


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidInputError(
            f"{name} must lie between {low} and {high}.",
            reason="KNOB_RANGE",
            remedy="Give a value in that range.",
            metadata={"field": name},
        )


def check_search(request: explore_pb2.SearchVariantsRequest) -> None:
    """Refuse a search that means nothing.

    Raises:
        InvalidInputError: NAME_INVALID, REFERENCE_MISSING or KNOB_RANGE.
    """
    _check_range("first_samples", request.first_samples, 0, MAX_SAMPLES)
    _check_range("finalists", request.finalists, 0, MAX_FINALISTS)
    if request.factor:
        _check_range("factor", request.factor, 2, MAX_FACTOR)
    names = [f.name for f in request.forms]
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(
            "A search needs at least one form, each with a name of its own.",
            reason="NAME_INVALID",
            remedy="Give every form another name.",
            metadata={"field": "forms"},
        )
    if not request.reference_outputs.sha256 and not all(f.reference_outputs.sha256 for f in request.forms):
        raise InvalidInputError(
            "A search needs the float outputs of the user's model on the held-out samples.",
            reason="REFERENCE_MISSING",
            remedy="Pass what the transform stage returns as reference_outputs.",
            metadata={"field": "reference_outputs"},
        )
