"""The command line comparison of two compiled models, as a process on a simulated board."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.toolchain


def test_two_files_are_compared_in_turns_without_a_server(start_agent, materials, tmp_path) -> None:
    agent = start_agent()
    agent.stop()
    slow, fast = str(materials["policy16"].model), str(materials["policy8"].model)
    base = [sys.executable, "-m", "boardlift_board_agent", "compare"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*base, *words, "--rounds", "3"]
        return subprocess.run(command, env=agent.environment, capture_output=True, text=True, timeout=120)

    faster = run(slow, fast)
    assert faster.returncode == 0, faster.stdout + faster.stderr
    assert faster.stdout.startswith("second is faster: second against first -") and "simulated" in faster.stdout
    same = run(fast, fast, "--json")
    assert same.returncode == 5
    assert json.loads(same.stdout)["verdict"] == "undecided"
    assert (refused := run(slow, fast, "--threads", "9")).returncode == 2 and "REQUEST_OUT_OF_RANGE" in refused.stderr
    assert (missing := run(slow, "nothing.bin")).returncode == 2 and "FILE_MISSING" in missing.stderr
    subprocess.run(
        [*base[:1], "-c", "from boardlift_simulator.make_board import main; main()", str(agent.board_root)],
        env={**agent.environment, "BOARDLIFT_SIMULATOR_SICK": "shared"},
        check=True,
    )
    shared = run(slow, fast)
    assert shared.returncode == 3 and "BOARD_UNFIT" in shared.stderr
