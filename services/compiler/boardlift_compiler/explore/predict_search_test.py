"""Prediction of a search with a builder that knows some builds already."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from boardlift.v1 import artifact_pb2

from boardlift_compiler.explore.learn_rounds import RoundTimes
from boardlift_compiler.explore.list_candidates import list_candidates
from boardlift_compiler.explore.load_forms import Form
from boardlift_compiler.explore.plan_search import plan_rounds
from boardlift_compiler.explore.predict_search import SearchForecast, reckon_evaluation
from boardlift_compiler.read_model import ModelSummary, Node
from boardlift_compiler.spec import CompileSpec
from boardlift_compiler.track_progress import PastRun, RunSize

SUMMARY = ModelSummary(7, {"": 11}, "g", (), (), (Node("n", "Gemm", "", ("x",), ("y",), {}),), {})
SAMPLES = {"x": np.zeros((16, 4), np.float32)}


class Builder:
    """Takes 10 s per build; `built` holds (level, method) of what is stored."""

    def __init__(self, built=()):
        runs = [
            PastRun(RunSize(1, 1000, 8, method, level), {"compile": 10.0})
            for method in ("max", "kl")
            for level in ("O1", "O2")
        ]
        self.runner, self.executions = SimpleNamespace(history=SimpleNamespace(runs=runs)), SimpleNamespace(slots=2)
        self.stored = set(built)

    async def is_built(self, model, variant, calibration):
        return (variant.compiler.optimize_level, variant.calibration.method) in self.stored


class Store:
    async def put_bytes(self, data, media_type):
        return artifact_pb2.ArtifactRef()


@pytest.fixture
def predict(tmp_path):
    async def run(built=()):
        form = Form("f", artifact_pb2.ArtifactRef(), SUMMARY, 1000, SAMPLES, SAMPLES, SAMPLES)
        times = RoundTimes(tmp_path / "rounds.json")
        candidates = list_candidates("f", SUMMARY, CompileSpec(), ["int8", "int16"], ["max", "kl"], [])
        rounds = plan_rounds(len(candidates), 16, 16, first=8, finalists=2)
        return times, await SearchForecast(Builder(built), Store(), {"f": form}, times).predict(candidates, rounds)

    return run


async def test_what_is_stored_costs_nothing(predict):
    _, fresh = await predict()
    _, half = await predict([("O1", "max")])
    _, whole = await predict([("O1", "max"), ("O1", "kl"), ("O2", "max"), ("O2", "kl")])
    assert [cost.stored for cost in half] == [2, 0] and all(cost.known for cost in fresh)
    assert half[0].seconds < 0.7 * fresh[0].seconds and half[1] == fresh[1]
    assert [cost.seconds for cost in whole] == [0.0, 0.0]


async def test_what_rounds_took_corrects_the_next(predict):
    times, before = await predict()
    times.add("O1", 10.0, 30.0)
    _, after = await predict()
    builds = before[0].seconds - reckon_evaluation(4, 8)
    assert after[0].seconds == pytest.approx(before[0].seconds + 2 * builds) and after[1] == before[1]
