"""Sensitivity from the command line, against the fake server."""

from __future__ import annotations


def test_prints_layers_and_the_suggested_plan(boardlift, model, data):
    ended = boardlift("sensitivity", model, "--data", data)
    assert ended.code == 0
    lines = ended.out.splitlines()
    layer = next(line.split() for line in lines if line.startswith("Gemm_1"))
    assert layer == ["Gemm_1", "Conv", "0.030000", "0.003000", "0.970000", "2.0", "int16"]
    assert "suggested, in int16: Gemm_1" in lines
    assert "to build it: --variant 'mixed-plan=int8,calibration=max,int16=Gemm_1'" in lines
    assert any(line.split()[:1] == ["mixed"] and "yes" in line for line in lines)


def test_without_a_target_nothing_claims_to_reach_one(boardlift, model, data):
    free = boardlift("sensitivity", model, "--data", data)
    assert "near int16" in free.out and "reaches target" not in free.out
    asked = boardlift("sensitivity", model, "--data", data, "--reach", "0.995")
    assert "reaches target" in asked.out and "near int16" not in asked.out


def test_request_and_json(boardlift, server, model, data):
    options = ["--reach", "0.995", "--samples", "4", "--method", "kl", "--no-proof"]
    answer = boardlift("sensitivity", model, "--data", data, *options, "--json").json
    assert answer["layers"][0]["node"] == "Gemm_1"
    request = server.explore.requests[-1]
    assert (request.goal.target, request.samples, request.no_proof) == (0.995, 4, True)
    assert request.variant.calibration.method == "kl"


def test_a_target_that_cannot_be_is_refused_before_anything_runs(boardlift, server, model, data):
    ended = boardlift("sensitivity", model, "--data", data, "--reach", "2")
    assert ended.code == 2 and "GOAL_INVALID" in ended.err and not server.explore.requests
