"""Remedies from the command line, against the fake server."""

from __future__ import annotations


def test_prints_reasons_and_gains(boardlift, model, data):
    ended = boardlift("remedies", model, "--data", data)
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["Softmax_2", "Softmax", "made", "up", "int16"] in lines
    assert ["int16", "precision", "-461", "117.0", "0.0", "0.387", "1"] in lines
    assert "int16: Run it in int16." in ended.out


def test_dry_run_and_json(boardlift, server, model, data):
    ended = boardlift("remedies", model, "--data", data, "--dry-run")
    assert "not tried" in ended.out and not server.explore.requests[-1].try_remedies
    answer = boardlift("remedies", model, "--data", data, "--precision", "int16", "--json").json
    assert answer["remedies"][0]["name"] == "int16"
    assert server.explore.requests[-1].variant.preset == "int16"
