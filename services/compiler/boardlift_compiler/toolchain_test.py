from pathlib import Path

import pytest
from boardlift.errors import PreconditionError

from boardlift_compiler.toolchain import Toolchain, missing_cpu_flags, probe_toolchain, tool_environment


@pytest.mark.parametrize(("flags", "missing"), [("sse avx avx2", ()), ("sse avx", ("avx2",)), ("sse", ("avx", "avx2"))])
def test_cpu_flags(tmp_path, flags, missing):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    assert missing_cpu_flags(file) == missing
    assert missing_cpu_flags(tmp_path / "absent") == ()


def test_the_environment_is_whole_and_holds_nothing_of_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    environment = tool_environment(tmp_path)
    assert environment["PATH"].startswith(f"{tmp_path}/bin:")
    assert "SECRET_TOKEN" not in environment


def test_the_interpreter_is_the_one_the_tool_starts(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hb_mapper").write_text("#!/usr/bin/python3.10\n")
    assert Toolchain(tmp_path, "1.24.3").python == Path("/usr/bin/python3.10")
    (tmp_path / "bin" / "hb_mapper").write_text("#!/bin/sh\n")
    assert Toolchain(tmp_path, "1.24.3").python == tmp_path / "bin" / "python"


@pytest.mark.parametrize(
    ("mapper", "compiler", "said"),
    [
        ("echo broken", "echo hbdk-cc version 3.49", "broken"),
        ("echo ImportError: numpy version 2.0; exit 1", "echo hbdk-cc version 3.49", "numpy version 2.0"),
        ("echo hb_mapper, version 1.24.3", "kill -ILL $$", "hbdk-cc --version ends with 132"),
    ],
)
async def test_a_tool_that_says_something_else_or_fails_is_no_toolchain(tmp_path, mapper, compiler, said):
    (tmp_path / "bin").mkdir()
    for name, text in (("hb_mapper", mapper), ("hbdk-cc", compiler)):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    with pytest.raises(PreconditionError) as caught:
        await probe_toolchain(tmp_path)
    assert said in caught.value.message


def test_an_unknown_version_is_said_in_every_result_and_refused_nowhere(tmp_path):
    (found,) = Toolchain(tmp_path, "1.99.0").findings
    assert (found.code, found.severity, found.subject) == ("TOOL_VERSION_UNTESTED", "warning", "1.99.0")
    assert Toolchain(tmp_path, "1.24.3").findings == ()
