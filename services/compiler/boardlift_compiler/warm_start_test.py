"""What the warm start does when its parent dies at the worst moment; the rest is in `run_mapper_test.py`."""

import asyncio
import contextlib
import json
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from boardlift_servicekit.tool import ToolCommand, run_tool

from boardlift_compiler import warm_start as module
from boardlift_compiler.prepare_calibration import read_samples
from boardlift_compiler.run_compile import CompileInputs, compile_model
from boardlift_compiler.run_folder import run_folder
from boardlift_compiler.run_mapper import Hooks, Limits
from boardlift_compiler.run_simulation import SimulateInputs, simulate_model
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec
from boardlift_compiler.toolchain import Toolchain, tool_environment
from boardlift_compiler.warm_start import WarmStart, _Parent, _read_messages


async def test_a_parent_that_dies_before_it_forks_ends_the_run_at_once(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    process = await asyncio.create_subprocess_exec("sleep", "60")
    parent = _Parent(process, contextlib.ExitStack(), ours)
    parent.reader = asyncio.create_task(_read_messages(parent))
    command = ToolCommand(["hb_mapper"], tmp_path, timeout_s=60.0)
    running = asyncio.create_task(WarmStart(None, tmp_path)._run(parent, command, None))
    await asyncio.sleep(0.1)
    theirs.close()
    try:
        result = await asyncio.wait_for(running, 5)
    finally:
        process.kill()
        await process.wait()
        ours.close()
    assert (result.exit_code, result.signal, result.timed_out) == (137, 9, False)


async def test_a_parent_that_has_just_died_costs_a_plain_start_and_no_file(tmp_path):
    (tmp_path / "hb_mapper").write_text("#!/bin/sh\necho plain\n")
    (tmp_path / "hb_mapper").chmod(0o700)
    command = ToolCommand([str(tmp_path / "hb_mapper")], tmp_path, log_path=tmp_path / "log")
    lines, warm = [], WarmStart(None, tmp_path)
    await run_tool(command)  # asyncio keeps files of its own from the first start on
    before = open_files()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = _Parent(None, contextlib.ExitStack(), ours)
    theirs.close()

    async def ensured():
        return parent

    warm._ensure_parent = ensured
    result = await warm.launch(command, lambda source, text: lines.append(text))
    ours.close()
    assert (result.exit_code, lines, warm.plain_runs, warm.warm_runs) == (0, ["plain"], 1, 0)
    assert not parent.waiting and open_files() == before


async def test_a_run_that_is_cancelled_while_it_is_forked_ends_all_the_same(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    parent = _Parent(None, contextlib.ExitStack(), ours)
    parent.reader = asyncio.create_task(_read_messages(parent))
    fork = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    running = asyncio.create_task(WarmStart(None, tmp_path)._run(parent, ToolCommand(["hb_mapper"], tmp_path), None))
    await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.sleep(0.1)
    theirs.send(json.dumps({"id": 1, "pid": fork.pid}).encode())
    await asyncio.wait_for(fork.wait(), 5)
    theirs.send(json.dumps({"id": 1, "exit_code": 143}).encode())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    theirs.close()
    await parent.reader
    ours.close()
    assert not parent.waiting


def made_up(tmp_path):
    """A toolchain whose interpreter is for the test to make."""
    (tmp_path / "toolchain/bin").mkdir(parents=True)
    (tmp_path / "toolchain/bin/hb_mapper").write_text("#!/bin/sh\n")
    return Toolchain(tmp_path / "toolchain", "0")


def open_files():
    return sorted(p.name for p in Path("/proc/self/fd").iterdir())


TOOL = """
import os, resource, subprocess, sys, time

def main(arguments, prog_name):
    if arguments == ["refuse"]:
        sys.exit("no such model")
    print("core", resource.getrlimit(resource.RLIMIT_CORE)[0], flush=True)
    if arguments:
        print("child", subprocess.Popen(["sleep", "60"]).pid, flush=True)
        time.sleep(60)
"""


def fake_tool(tmp_path):
    """A toolchain of which only what the fork server imports is there; with arguments it starts a child and waits."""
    toolchain = made_up(tmp_path)
    package = tmp_path / "packages/horizon_tc_ui"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "hb_mapper.py").write_text(TOOL)
    toolchain.python.write_text(
        f'#!/bin/sh\nulimit -c unlimited\nPYTHONPATH={tmp_path}/packages exec {sys.executable} "$@"\n'
    )
    toolchain.python.chmod(0o700)
    return toolchain


async def ends(pid):
    for _ in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        await asyncio.sleep(0.05)
    return False


async def begin(warm, toolchain, folder, *arguments):
    """Start a run; returns its task and, with arguments, its child once there is one."""
    folder.mkdir()
    child = asyncio.get_running_loop().create_future()

    def on_line(source, text):
        word, number = text.split()
        if word == "child":
            child.set_result(int(number))

    command = ToolCommand([toolchain.program("hb_mapper"), *arguments], folder, {"PATH": "/usr/bin:/bin"})
    task = asyncio.create_task(warm.launch(command, on_line))
    return task, await asyncio.wait_for(child, 10) if arguments else 0


async def test_a_parent_that_is_killed_takes_the_children_of_its_runs_along(tmp_path):
    toolchain = fake_tool(tmp_path)
    warm = WarmStart(toolchain, tmp_path / "runs")
    task, child = await begin(warm, toolchain, tmp_path / "work", "compile")
    warm._parent.process.kill()
    assert (await asyncio.wait_for(task, 10)).signal == 9
    assert await ends(child)
    await warm.close()


async def test_a_run_that_cannot_begin_says_why_and_leaves_the_others_alone(tmp_path):
    toolchain = fake_tool(tmp_path)
    warm = WarmStart(toolchain, tmp_path / "runs")
    task, child = await begin(warm, toolchain, tmp_path / "work", "compile")
    result = await warm.launch(ToolCommand([toolchain.program("hb_mapper")], tmp_path / "absent"))
    assert result.exit_code == 1 and any("absent" in line for line in result.last_lines)
    assert not task.done() and warm.plain_runs == 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await ends(child)
    await warm.close()


async def test_what_the_tool_says_when_it_exits_is_heard(tmp_path):
    toolchain = fake_tool(tmp_path)
    warm = WarmStart(toolchain, tmp_path / "runs")
    result = await warm.launch(ToolCommand([toolchain.program("hb_mapper"), "refuse"], tmp_path))
    assert (result.exit_code, result.last_lines, warm.warm_runs) == (1, ("no such model",), 1)
    await warm.close()


async def test_a_run_by_fork_writes_no_core_file_either(tmp_path):
    toolchain = fake_tool(tmp_path)
    warm = WarmStart(toolchain, tmp_path / "runs")
    task, _ = await begin(warm, toolchain, tmp_path / "work")
    assert (await task).last_lines == ("core 0",) and warm.warm_runs == 1
    await warm.close()


@pytest.mark.parametrize("program", ["absent", "not executable", "ends at once"])
async def test_a_parent_that_cannot_start_leaves_neither_folder_nor_socket(tmp_path, program):
    toolchain, runs = made_up(tmp_path), tmp_path / "runs"
    python = toolchain.python
    if program == "not executable":
        python.write_text("#!/bin/sh\n")
    elif program == "ends at once":
        python.symlink_to("/bin/false")
    warm = WarmStart(toolchain, runs)
    assert await warm._ensure_parent() is None  # asyncio keeps files of its own from the first start on
    before = open_files()
    for _ in range(3):
        assert await warm._ensure_parent() is None
    assert list(runs.iterdir()) == []
    assert open_files() == before


async def test_a_cancelled_start_leaves_neither_folder_nor_process(tmp_path):
    toolchain, runs = made_up(tmp_path), tmp_path / "runs"
    toolchain.python.write_text("#!/bin/sh\nexec sleep 1\n")
    toolchain.python.chmod(0o700)
    starting = asyncio.create_task(WarmStart(toolchain, runs)._ensure_parent())
    await asyncio.sleep(0.2)
    assert len(list(runs.iterdir())) == 1
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert list(runs.iterdir()) == []


@pytest.mark.toolchain
@pytest.mark.xdist_group("compiler-tool")
async def test_a_simulation_by_fork_says_the_same_as_one_by_a_fresh_process(toolchain, models, put, tmp_path):
    model = models.policy((225, 32, 12))
    path, data = put(model)
    warm, answers = WarmStart(toolchain, tmp_path / "warm"), []
    spec = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O0"))
    try:
        with run_folder(tmp_path / "runs") as folder:
            built = await compile_model(
                toolchain, CompileInputs(path, spec, data), folder, Limits(), Hooks(launcher=warm.launch)
            )
            (tmp_path / "quantized.onnx").write_bytes(built.quantized_model.read_bytes())
            (tmp_path / "model.bin").write_bytes(built.compiled)
        for launcher in (run_tool, warm.launch):
            asked = SimulateInputs(
                tmp_path / "quantized.onnx", tmp_path / "model.bin", data, None, built.spec, 2, launcher=launcher
            )
            with run_folder(tmp_path / "runs") as folder:
                outcome = await simulate_model(toolchain, asked, folder)
                assert outcome.failure is None and outcome.bit_exact and outcome.batched
                answers.append(read_samples(outcome.quantized_outputs))
        assert (warm.warm_runs, warm.plain_runs) == (3, 0)  # the tool, the comparison of its models, the simulation
    finally:
        await warm.close()
    assert answers[0].keys() == answers[1].keys()
    assert all(np.array_equal(answers[0][name], answers[1][name]) for name in answers[0])


@pytest.mark.toolchain
@pytest.mark.xdist_group("compiler-tool")
async def test_a_parent_that_is_replaced_while_it_works_ends_with_its_last_run(toolchain, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_RUNS", 1)
    warm = WarmStart(toolchain, tmp_path / "runs")

    async def version():
        with run_folder(tmp_path / "work") as folder:
            environment = tool_environment(toolchain.root, folder)
            argv = [toolchain.program("hb_mapper"), "--version"]
            return await warm.launch(ToolCommand(argv, folder.path, environment))

    try:
        first = await warm._ensure_parent()
        results = await asyncio.gather(version(), version(), version())
        assert [r.exit_code for r in results] == [0, 0, 0] and warm.plain_runs == 0
        assert warm._parent is not first and first.process.returncode is not None
        assert len(list((tmp_path / "runs").iterdir())) == 1
    finally:
        await warm.close()
    assert list((tmp_path / "runs").iterdir()) == []
