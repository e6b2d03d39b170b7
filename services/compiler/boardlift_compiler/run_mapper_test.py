"""Ends of the real tool that leave no word, caused for real: crash, memory, disk, time, silence, kills, cancel."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from boardlift_compiler.explain_failure import RunEnd, explain_run
from boardlift_compiler.parse_log import parse_log
from boardlift_compiler.run_check import ARGUMENTS as CHECK
from boardlift_compiler.run_compile import ARGUMENTS as BUILD
from boardlift_compiler.run_compile import CompileInputs, CompileOutcome, compile_model, prepare_run
from boardlift_compiler.run_folder import RunFolder, run_folder
from boardlift_compiler.run_mapper import Hooks, Limits, run_mapper
from boardlift_compiler.spec import CalibrationSpec, CompilerKnobs, CompileSpec
from boardlift_compiler.track_progress import ProgressTracker
from boardlift_compiler.warm_start import WarmStart

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("compiler-tool")]
SLOW = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O3"))


def processes_in(path: Path) -> list[int]:
    """Processes whose working directory lies in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str((entry / "cwd").readlink()).startswith(str(path)):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def all_gone(path: Path, seconds: float = 5.0) -> bool:
    """Wait for the end of what has been killed: a busy machine takes a moment to take it down."""
    deadline = time.monotonic() + seconds
    while processes_in(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture(params=["plain", "warm"])
async def launch(request, toolchain, tmp_path):
    """Both ways to start the tool; returns the hooks to use."""
    if request.param == "plain":
        yield Hooks()
        return
    warm = WarmStart(toolchain, tmp_path / "warm")
    await warm._ensure_parent()  # its imports take seconds on a busy machine, and the limits here are short
    yield Hooks(launcher=warm.launch)
    await warm.close()
    assert all_gone(tmp_path)


async def run(toolchain, folder, arguments, limits=None, hooks=None):
    return await run_mapper(
        toolchain,
        arguments,
        folder,
        limits=limits or Limits(timeout_s=120),
        hooks=hooks or Hooks(),
        tracker=ProgressTracker(),
    )


def prepare(put, model, folder, spec=SLOW, **more):
    path, data = put(model, **more)
    outcome = CompileOutcome()
    assert prepare_run(CompileInputs(path, spec, data, 1), folder, outcome), outcome.failure


def big(models):
    """A model whose O3 compile takes several seconds."""
    return models.deep()


async def test_a_native_crash(toolchain, folder, models, launch):
    models.save(models.recurrent(), folder.path / "model.onnx")
    run_ = await run(toolchain, folder, CHECK, hooks=launch)
    assert run_.end.exit_code == 139
    failure = explain_run(run_.end, run_.facts, needs_model=False)
    assert failure.code == "CRASH"
    assert "optimise" in failure.message


@pytest.mark.parametrize("limit", [350_000_000, 450_000_000, 700_000_000])
async def test_out_of_memory(toolchain, folder, models, put, launch, limit):
    """Before the tool is loaded, while it reads its configuration, and in the middle of its work."""
    prepare(put, models.camera(size=(512, 512)), folder, count=100)
    run_ = await run(toolchain, folder, BUILD, Limits(timeout_s=120, memory_bytes=limit), launch)
    failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
    assert failure.code == "OUT_OF_MEMORY", failure
    assert not failure.user_fault


def limit_memory(bytes_: int) -> Path | None:
    """Make a control group with a memory limit; None where this user may not."""
    root = Path("/sys/fs/cgroup/memory")  # version 1; version 2 has all controllers in one tree
    place = (root if root.is_dir() else root.parent) / f"boardlift-test-{os.getpid()}"
    try:
        place.mkdir()
        (place / ("memory.limit_in_bytes" if root.is_dir() else "memory.max")).write_text(str(bytes_))
    except OSError:
        with contextlib.suppress(OSError):
            place.rmdir()
        return None
    return place


async def test_the_kernels_own_kill_for_want_of_memory(toolchain, folder, models, put, launch):
    """Regression: it looked like any other kill. Without the right to limit memory, what the counter means must do."""
    group = limit_memory(140_000_000)
    if group is None:
        assert explain_run(RunEnd(137, oom_killed=True), parse_log([])).code == "OUT_OF_MEMORY"
        return
    prepare(put, models.camera(size=(512, 512)), folder, count=100)
    task = asyncio.create_task(run(toolchain, folder, BUILD, hooks=launch))
    try:
        while not task.done():  # again and again: a child that is forked meanwhile stays where its parent was
            for pid in processes_in(folder.path):
                with contextlib.suppress(OSError):
                    (group / "cgroup.procs").write_text(str(pid))
            await asyncio.sleep(0.02)
        run_ = await task
        failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
        assert (failure.code, run_.end.oom_killed) == ("OUT_OF_MEMORY", True), failure
        assert all_gone(folder.path)
    finally:
        group.rmdir()


async def test_a_file_that_grows_too_large(toolchain, folder, models, put, launch):
    prepare(put, models.policy(), folder)
    run_ = await run(toolchain, folder, BUILD, Limits(timeout_s=120, file_bytes=400_000), launch)
    failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
    assert failure.code == "FILE_TOO_LARGE", failure


async def test_disk_full(toolchain, models, put, small_disk):
    """The run folder lies on a file system of 2 MB; where nothing may be mounted, the text of a full disk must do."""
    if small_disk is None:
        facts = parse_log(["2026-01-01 00:00:00,000 ERROR [Errno 28] No space left on device: 'out/model.onnx'"])
        assert explain_run(RunEnd(255), facts).code == "DISK_FULL"
        return
    with run_folder(small_disk) as folder:
        prepare(put, models.policy(), folder)
        run_ = await run(toolchain, folder, BUILD)
        failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
    assert failure.code == "DISK_FULL", failure
    assert not failure.user_fault


async def test_timeout(toolchain, folder, models, put, launch):
    prepare(put, big(models), folder)
    started = time.monotonic()
    run_ = await run(toolchain, folder, BUILD, Limits(timeout_s=1.5), launch)
    assert time.monotonic() - started < 8
    failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
    assert failure.code == "TIMEOUT"
    assert all_gone(folder.path)


async def test_a_hang_without_output(toolchain, folder, models, put, launch):
    """The tool is stopped by SIGSTOP in the middle of its work: alive, silent, and not even ending on TERM."""
    prepare(put, big(models), folder)
    task = asyncio.create_task(run(toolchain, folder, BUILD, Limits(120, silence_s=3, compile_silence_s=3), launch))
    pids = await wait_for(
        lambda: [p for p in processes_in(folder.path) if "hb" in command_of(p) or "fork" in command_of(p)]
    )
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    run_ = await asyncio.wait_for(task, 30)
    failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
    assert failure.code == "HANG"
    assert all_gone(folder.path)


async def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


async def test_a_killed_compiler(toolchain, folder, models, put, launch):
    prepare(put, big(models), folder)
    task = asyncio.create_task(run(toolchain, folder, BUILD, hooks=launch))
    pids = await wait_for(lambda: [p for p in processes_in(folder.path) if "hbdk-cc -f" in command_of(p)])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    run_ = await asyncio.wait_for(task, 60)
    failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
    assert (failure.code, failure.subject, failure.user_fault) == ("KILLED", "9", False), failure
    assert run_.end.exit_code != 0


async def test_a_killed_tool_takes_its_compiler_along(toolchain, folder, models, put, launch):
    prepare(put, big(models), folder)
    task = asyncio.create_task(run(toolchain, folder, BUILD, hooks=launch))
    await wait_for(lambda: [p for p in processes_in(folder.path) if "hbdk-cc -f" in command_of(p)])
    for pid in processes_in(folder.path):
        if "hbdk-cc" not in command_of(pid) and "guard" not in command_of(pid):
            os.kill(pid, signal.SIGKILL)
    run_ = await asyncio.wait_for(task, 60)
    failure = explain_run(run_.end, run_.facts, expect_march="bayes-e")
    assert failure.code == "KILLED", failure
    assert not failure.user_fault
    assert all_gone(folder.path)


async def test_cancel_leaves_no_process_and_no_file_within_five_seconds(toolchain, models, put, tmp_path, launch):
    root = tmp_path / "cancelled"
    path, data = put(big(models))

    async def whole():
        with run_folder(root) as folder:
            return await compile_model(toolchain, CompileInputs(path, SLOW, data, 1), folder, Limits(), launch)

    task = asyncio.create_task(whole())
    await wait_for(lambda: [p for p in processes_in(root) if "hbdk-cc -f" in command_of(p)])
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5
    assert all_gone(root, 1.0)
    assert list(root.iterdir()) == []


async def test_two_forks_at_once_do_not_share_anything(toolchain, models, put, tmp_path):
    """Regression: the tool makes its temporary folder at import, which forks would share."""
    warm = WarmStart(toolchain, tmp_path / "warm")
    hooks = Hooks(launcher=warm.launch)
    quick = CompileSpec(calibration=CalibrationSpec("max"), compiler=CompilerKnobs("O1"))

    async def one(name, seed):
        path, data = put(models.policy((225, 64, 12), seed=seed), name=name)
        with run_folder(tmp_path / "runs") as folder:
            return (
                await compile_model(toolchain, CompileInputs(path, quick, data, 1), folder, Limits(), hooks)
            ).compiled

    try:
        alone = [await one("a", 1), await one("b", 2)]
        together = await asyncio.gather(one("a", 1), one("b", 2), one("a", 1), one("b", 2))
    finally:
        await warm.close()
    assert alone[0] != alone[1]
    assert together == [alone[0], alone[1], alone[0], alone[1]]


async def test_a_dead_parent_is_replaced(toolchain, models, put, folder, tmp_path):
    warm = WarmStart(toolchain, tmp_path / "warm")
    try:
        models.save(models.policy((225, 32, 12)), folder.path / "model.onnx")
        assert (await run(toolchain, folder, CHECK, hooks=Hooks(launcher=warm.launch))).facts.checked
        warm._parent.process.kill()
        await warm._parent.process.wait()
        await asyncio.sleep(0.1)
        assert (await run(toolchain, folder, CHECK, hooks=Hooks(launcher=warm.launch))).facts.checked
        assert warm.warm_runs == 2
    finally:
        await warm.close()


async def test_without_a_toolchain_the_warm_start_gives_up_politely(toolchain, tmp_path):
    from boardlift.errors import PreconditionError

    from boardlift_compiler.toolchain import Toolchain, probe_toolchain

    with pytest.raises(PreconditionError) as caught:
        await probe_toolchain(tmp_path / "nothing")
    assert caught.value.reason == "TOOLCHAIN_MISSING"
    assert "make toolchain" in caught.value.remedy
    warm = WarmStart(Toolchain(tmp_path / "nothing", "0"), tmp_path / "warm")
    folder = RunFolder(tmp_path)
    with pytest.raises(PreconditionError):
        await run(Toolchain(tmp_path / "nothing", "0"), folder, CHECK, hooks=Hooks(launcher=warm.launch))
    await warm.close()
