"""Estimates from the command line, against the fake server."""

from __future__ import annotations

from boardlift.errors import InvalidInputError
from boardlift.explore import ExploreClient


def test_prints_subgraphs_islands_relation_and_limits(boardlift, tmp_path):
    path = tmp_path / "m.bin"
    path.write_bytes(b"compiled")
    ended = boardlift("estimate", path)
    assert ended.code == 0
    assert "main_graph_subgraph_0  64.0" in ended.out
    assert "CPU island, at an end of the model, no handover: shape (Reshape)" in ended.out
    assert "relation: made up" in ended.out and "note ESTIMATE_RANGE" in ended.out
    assert boardlift("estimate", path, "--json").json["relation"] == "made up"


def test_a_file_that_is_not_there(boardlift, tmp_path):
    assert boardlift("estimate", tmp_path / "none.bin").code == 2


def test_a_file_that_is_no_build_is_named(boardlift, monkeypatch, tmp_path):
    def refuse(client: object, path: object) -> None:
        raise InvalidInputError("No build.", reason="COMPILED_MODEL_UNREADABLE", metadata={"field": "compiled_model"})

    monkeypatch.setattr(ExploreClient, "estimate", refuse)
    path = tmp_path / "m.bin"
    path.write_bytes(b"text")
    ended = boardlift("estimate", path)
    assert ended.code == 2 and f"at: {path}" in ended.err
