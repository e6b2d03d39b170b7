"""Where nothing can be written is said before the work, and never as a bug."""

from __future__ import annotations

import errno

import pytest

from boardlift.cli import __main__ as entry
from boardlift.cli.__main__ import run
from boardlift.testing import FakeServer

SAVING = [
    ("transform", "{model}", "--out", "{folder}"),
    ("transform", "{model}", "--out", "{file}/below.onnx"),
    ("run", "{model}", "--data", "{data}", "--out", "{file}"),
    ("run", "{model}", "--data", "{data}", "--out", "{file}/below/it"),
    ("compile", "{model}", "--data", "{data}", "--out", "{file}/below"),
    ("samples", "job-1", "--out", "{file}/below"),
    ("pull", "job-1", "{file}/below"),
    ("report", "job-1", "--html", "{folder}"),
    ("dataset", "arrays", "obs={data}", "--out", "{folder}"),
]


@pytest.mark.parametrize("line", SAVING, ids=" ".join)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_sent(
    boardlift, server, model, data, tmp_path, line
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    places = {"model": model, "data": data, "folder": tmp_path / "folder", "file": tmp_path / "file"}
    ended = boardlift(*(part.format(**places) for part in line))
    assert ended.code == 2 and "error USAGE" in ended.err and ("is a file" in ended.err or "is a dir" in ended.err)
    assert not server.calls and list((tmp_path / "folder").iterdir()) == []


def test_a_folder_without_rights_is_refused(boardlift, server, model, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write anywhere
    ended = boardlift("transform", model, "--out", tmp_path / "x.onnx")
    assert ended.code == 2 and f"nothing may be written to {tmp_path}" in ended.err and not server.calls


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "x/y"), 2, "error FILE_UNUSABLE: x/y can't be used: you"),
        (OSError(errno.ENOSPC, "No space left on device"), 3, "error DISK_FULL: No space left on device."),
        (OSError("no number, no file"), 3, "error BUG: OSError: no number, no file"),
    ],
)
def test_what_the_system_refuses_is_told_by_its_path(monkeypatch, capsys, error, code, said):
    def broken(**_: object) -> None:
        raise error

    monkeypatch.setattr(entry.app, "main", broken)
    assert run(["jobs"]) == code and said in capsys.readouterr().err


def test_a_download_that_has_no_place_is_told_by_the_name_the_caller_gave(boardlift, model):
    with FakeServer() as server:
        ended = boardlift("transform", model, "--out", "/proc/x.onnx", "--server", server.address)
    assert (
        ended.code == 2 and "error FILE_UNUSABLE: /proc/x.onnx can't be used" in ended.err and ".part" not in ended.err
    )
