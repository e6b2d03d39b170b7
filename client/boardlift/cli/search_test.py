"""Searching from the command line, against the fake server."""

from __future__ import annotations

import pytest

from boardlift.explore import form_name, form_plans
from boardlift.testing import FakeServer, Scenario, StageScript


def test_prints_the_front_and_the_best(boardlift, model, data):
    ended = boardlift("search", model, "--data", data, "--plan", "int8,int16", "--method", "max")
    assert ended.code == 0 and "best: as-planned/int16/max" in ended.out
    rows = [line.split() for line in ended.out.splitlines() if "/max" in line and "best" not in line]
    assert rows[0] == ["*", "as-planned/int16/max", "0.999000", "8", "117.0", "0.0", "0.387", "1", "O2", "finalist"]
    assert rows[1][0] == "as-planned/int8/max"


def test_request_holds_what_was_asked(boardlift, server, model, data):
    options = ["--metric", "p99_abs", "--reach", "0.05", "--on-output", "actions", "--finalists", "3"]
    boardlift("search", model, "--data", data, "--plan", "int8", *options)
    request = server.explore.requests[-1]
    assert (request.goal.metric, request.goal.target, request.goal.output) == ("p99_abs", 0.05, "actions")
    assert list(request.plans) == ["int8"] and request.finalists == 3
    assert request.forms[0].model.sha256


def test_dry_run_says_cost_and_candidates(boardlift, model, data):
    ended = boardlift("search", model, "--data", data, "--dry-run")
    assert ended.code == 0 and "Predicted: 1 min 30 s (a guess" in ended.out
    assert "as-planned/int8/max" in ended.out and "best" not in ended.out


def test_a_target_out_of_reach_fails(boardlift, model, data):
    ended = boardlift("search", model, "--data", data, "--reach", "0.9999")
    assert ended.code == 1 and "none reaches the target" in ended.out


def test_json(boardlift, model, data):
    answer = boardlift("search", model, "--data", data, "--json").json
    assert answer["best"] == "as-planned/int16/max"


def test_a_model_that_is_refused(boardlift, model, data, monkeypatch):
    with FakeServer(Scenario(stages={"transform": StageScript(failure_code="OPSET_TOO_HIGH")})) as server:
        monkeypatch.setenv("BOARDLIFT_TRANSFORM", server.address)
        ended = boardlift("search", model, "--data", data)
    assert ended.code == 2 and "OPSET_TOO_HIGH" in ended.err


@pytest.mark.parametrize(
    ("without", "extra", "names"),
    [
        ((), (), ["as-planned"]),
        (("a",), (), ["baseline", "as-planned"]),
        (("a", "b_c"), (), ["baseline", "as-planned", "without-a", "without-b-c"]),
        ((), ("d",), ["as-planned", "with-d"]),
    ],
)
def test_forms(without, extra, names):
    assert [name for name, _, _ in form_plans(without, extra)] == names
    assert form_name("Weird  Näme") == "weird-n-me"


def test_a_pass_that_is_added_comes_behind_the_plan(boardlift, server, model, data):
    boardlift("search", model, "--data", data, "--with-pass", "dense-grouped-conv")
    # The fake server gives every model back as it came, so both forms are the same and only one is searched.
    assert [form.name for form in server.explore.requests[-1].forms] == ["as-planned"]
    assert server.calls["PlanTransform"] == 1 and server.calls["TransformModel"] == 2


def test_inputs_that_are_frozen_or_fed_by_a_camera(boardlift, server, model, data):
    words = ["--freeze", "sr=16000", "--input", "obs:type_train=rgb,type_rt=nv12", "--skip-pass", "a,b"]
    for command in ("search", "sensitivity", "remedies"):
        assert boardlift(command, model, "--data", data, *words).code == 0
    search, sensitivity, _, remedies = server.explore.requests[-4:]
    for variant in (search.base, sensitivity.variant, remedies.variant):
        assert (variant.inputs[0].name, variant.inputs[0].type_rt) == ("obs", "nv12")
    assert dict(server.transform.requests[-1].spec.frozen_inputs) == {"sr": "16000"}
    assert list(server.transform.requests[-1].spec.skip_passes) == ["a", "b"]
