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


def test_passes_that_are_named_are_run_and_tried(boardlift, server, model, data):
    ended = boardlift("remedies", model, "--data", data)
    named, tried = server.explore.requests[-2:]
    assert not named.try_remedies and tried.try_remedies and named.form == tried.form
    assert server.calls["TransformModel"] == 2
    # The fake server gives every model back as it came: the pass changes nothing, so there is no form to try.
    assert not tried.alternatives
    row = next(line for line in ended.out.splitlines() if line.startswith("softmax-on-last-axis  transform"))
    assert row.endswith("changes nothing") and "PASS_CHANGES_NOTHING [softmax-on-last-axis]" in ended.out


def test_islands_are_printed_with_their_cost(boardlift, model, data):
    line = "CPU island, splits the BPU, about 484 us a frame"
    assert line in boardlift("remedies", model, "--data", data).out
    checked = boardlift("check", model)
    assert line in checked.out and "softmax-on-last-axis  transform" in checked.out
    assert boardlift("check", model, "--json").json["remedies"]["islands"][0]["splits"]


def test_check_tries_remedies_when_asked(boardlift, server, model, data):
    ended = boardlift("check", model, "--try-remedies", "--data", data, "--precision", "int16")
    assert ended.code == 0
    assert ended.out == boardlift("remedies", model, "--data", data, "--precision", "int16").out
    mine, theirs = server.explore.requests[-3::2]
    assert mine == theirs and mine.try_remedies and mine.variant.preset == "int16"


def test_check_says_what_trying_remedies_needs(boardlift, model, data):
    ended = boardlift("check", model, "--try-remedies")
    assert ended.code == 2 and "--data" in ended.err
    ended = boardlift("check", model, "--try-remedies", "--data", data, "--all")
    assert ended.code == 2 and "--all" in ended.err
