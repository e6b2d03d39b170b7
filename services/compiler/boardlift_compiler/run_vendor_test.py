"""Every way in which one of our programs can end, caused for real under this interpreter."""

import sys

import pytest

from boardlift_compiler import run_vendor
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_vendor import run_vendor_program
from boardlift_compiler.toolchain import Toolchain

HEAD = "import json, os, pathlib, signal, sys, time\nrequest = json.loads(pathlib.Path(sys.argv[1]).read_text())\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run these lines as a program of ``toolchain_side``; what it says goes to the list."""

    async def run_lines(lines: str, said: list[object], timeout_s: float = 60.0):
        program = tmp_path / "program.py"
        program.write_text(HEAD + lines, encoding="utf-8")
        monkeypatch.setattr(run_vendor, "toolchain_side", lambda name: tmp_path / name)
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/hb_mapper").write_text(f"#!{sys.executable}\n", encoding="utf-8")
        toolchain = Toolchain(tmp_path, "1.24.3")
        with run_folder(tmp_path / "runs") as folder:
            return await run_vendor_program(
                toolchain, "program.py", {"word": "hello"}, folder, said.append, timeout_s=timeout_s
            )

    return run_lines


async def test_the_answer_comes_from_its_file_and_the_rest_as_messages(run):
    said: list[object] = []
    answer = await run(
        "print('a line of the vendor')\nprint('{not json')\nprint(json.dumps({'progress': [1, 2]}))\n"
        "pathlib.Path(request['answer']).write_text(json.dumps(request['word'] * 30000))\n"
        "print(json.dumps({'result': {}}))\n",
        said,
    )
    assert answer == "hello" * 30000 and said == [{"progress": [1, 2]}]


@pytest.mark.parametrize(
    ("lines", "code", "word"),
    [
        ("print(json.dumps({'error': 'Fail: node Conv_3 has no kernel'}))\nsys.exit(1)", "SIMULATION_FAILED", "Conv_3"),
        ("raise ValueError('odd shape')", "SIMULATION_FAILED", "odd shape"),
        (
            "print(json.dumps({'error': 'MemoryError: 9 GiB'}))\nsys.exit(1)",
            "OUT_OF_MEMORY",
            "9 GiB",
        ),
        (
            "print(json.dumps({'error': 'OSError: [Errno 28] No space left on device'}))\nsys.exit(1)",
            "DISK_FULL",
            "Errno 28",
        ),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "CRASH", "11"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "KILLED", "9"),
        ("sys.exit(0)", "SIMULATION_FAILED", ""),
    ],
)
async def test_an_end_without_an_answer_says_why(run, lines, code, word):
    failure = await run(lines, [])
    assert isinstance(failure, StageFailure)
    assert failure.code == code
    assert word in " ".join([failure.message, *failure.evidence])


async def test_a_program_that_hangs_is_killed_at_its_limit(run):
    failure = await run("time.sleep(600)", [], timeout_s=1.0)
    assert isinstance(failure, StageFailure)
    assert failure.code == "TIMEOUT" and "within 1 s" in failure.message
