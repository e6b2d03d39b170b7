"""Build, start, use, hurt, stop, lose and restore the stack in containers; exits with 1 when it breaks a promise.

`drive.py verdict` ends after the first job.

The blocks of docs/deploy.md marked `<!-- run: NAME -->` are run as they stand there. Every job after the first one has
a calibration of its own, so that nothing but what is meant to comes from the cache.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from inspect_stack import check_bills, check_rights, print_sizes
from join_board import check_board_joins
from operate import (
    PARTS,
    SECRETS,
    WORK,
    Broken,
    cli,
    compose,
    container,
    documented,
    expect,
    finished_runs,
    kill,
    run,
    show,
    stage,
    submit,
    wait_end,
    wait_running,
)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print what is done and how long it took."""
    print(f"-- {name}", flush=True)
    begin = time.monotonic()
    yield
    print(f"   ok, {time.monotonic() - begin:.1f} s", flush=True)


def disturb(title: str, number: int, at: str, harm: Callable[[], object], *words: str) -> None:
    """Run a job, do harm in a stage, expect the verdict and nothing finished twice."""
    begin = time.monotonic()
    job = submit(number, *words)
    if at:
        wait_running(job, at)
    before = {s["stage"]: s for s in show(job)["stages"] if s["state"] == "succeeded"}
    harm()
    after = wait_end(job)
    for name, done in before.items():
        again = stage(after, name)
        expect(again["started"] == done["started"] and again["result"] == done["result"], f"{name} of {job} ran again")
    counts = finished_runs(job)
    # The log of a container that was replaced is gone with it.
    seen = not at or at in counts or harm is replace_compiler
    expect(seen and all(n == 1 for n in counts.values()), f"not run to the end exactly once each: {counts}")
    expect(after["verdict"]["outcome"] in ("pass", "fail", "undecided"), f"no verdict: {after['verdict']}")
    attempts = {s["stage"]: s["attempt"] for s in after["stages"] if s["attempt"] > 1}
    KILLS.append(
        f"{title:58} {after['verdict']['outcome']:9} {time.monotonic() - begin:6.1f} s  runs {counts}  more {attempts}"
    )
    print("   " + KILLS[-1], flush=True)
    compose("up", "-d", "--wait", "--no-build", "--no-recreate")


KILLS: list[str] = []


def replace_compiler() -> None:
    """Put a newer build in the place of a running container, as docs/deploy.md says."""
    old = container("compiler")
    documented("upgrade")
    new = container("compiler")
    label = run(
        "docker", "inspect", "-f", '{{index .Config.Labels "org.opencontainers.image.version"}}', new
    ).stdout.strip()
    expect(old != new and label == "0.1.1", f"the compiler was not replaced: {label}")


def check_vendor_image() -> None:
    """Put the compiler into an image that is laid out like the vendor's; that image's own files stay as they are."""
    stand_in = "boardlift-vendor-stand-in:1.0.0"
    run("docker", "build", "-q", "-t", stand_in, str(Path(__file__).parent / "vendor"))
    both = ("docker", "compose", "-f", "deploy/compose.yaml", "-f", "deploy/compose.vendor.yaml")
    run(*both, "build", "compiler", BOARDLIFT_VENDOR_IMAGE=stand_in)
    listing = ["-c", "find /usr -xdev -type f | sort | xargs sha256sum | sha256sum"]
    digests = {
        run("docker", "run", "--rm", "--user", "0:0", "--entrypoint", "sh", image, *listing).stdout
        for image in (stand_in, "boardlift/compiler-vendor:0.1.0")
    }
    expect(len(digests) == 1, "the vendor's own files were changed")
    run(*both, "up", "-d", "--no-deps", "--no-build", "--wait", "compiler", BOARDLIFT_VENDOR_IMAGE=stand_in)
    job = wait_end(submit(20, "--no-board"))
    expect(stage(job, "compile")["cached"] is False, "nothing was compiled")
    compose("up", "-d", "--no-deps", "--no-build", "--wait", "compiler")


def kill_all() -> None:
    """Lose the machine's power."""
    pids = run("docker", "inspect", "-f", "{{.State.Pid}}", *(container(part) for part in PARTS)).stdout.split()
    for pid in pids:
        os.kill(int(pid), 9)


def restart_nats() -> None:
    """Restart the broker the gentle way."""
    compose("restart", "nats")


def check_graceful_stop() -> None:
    """Every container ends by itself within its grace."""
    begin = time.monotonic()
    compose("stop")
    codes = {
        part: run("docker", "inspect", "-f", "{{.State.ExitCode}}", container(part)).stdout.strip() for part in PARTS
    }
    expect(set(codes.values()) <= {"0", "143"}, f"not stopped by themselves: {codes}")
    print(f"   stopped in {time.monotonic() - begin:.1f} s, exit codes {codes}", flush=True)
    compose("up", "-d", "--wait", "--no-build")


def check_backup(first: str) -> None:
    """Save, lose everything, restore, and find the old job with all its stages."""
    documented("save")
    compose("down", "-v")
    documented("restore")
    expect(show(first)["verdict"]["outcome"] == "pass", "the old verdict is gone")
    cli("pull", first, f"{WORK}/pulled")
    expect(any((WORK / "pulled").glob("*.bin")), "the compiled models are gone")
    again = wait_end(submit(11, "--no-board"))
    expect(stage(again, "compile")["cached"] is True, f"compiled again after the restore: {stage(again, 'compile')}")


def bring_up(begin: float) -> str:
    """From nothing to the first verdict; returns the job's id."""
    with step("secrets, by docs/deploy.md"):
        run("deploy/make_secrets.py", "init", "--dir", str(SECRETS), "--name", "lab.example")
        run("deploy/make_secrets.py", "user", "alice", "--dir", str(SECRETS))
    with step("build and start, by docs/deploy.md"):
        documented("start")
    with step("first job, client outside"):
        documented("look")
        documented("client")
        told = documented("job")
        expect("PASS" in told, told[-3000:])
        first = str(json.loads(cli("jobs", "ls", "--json").stdout)[0]["id"])
    print(f"   from nothing to the verdict: {time.time() - begin:.0f} s", flush=True)
    with step("images"):
        agent = (
            "--file",
            "services/board_agent/Dockerfile",
            "--target",
            "agent",
            "--tag",
            "boardlift/board-agent:0.1.0",
        )
        run("docker", "build", "--quiet", *agent, ".")
        print_sizes()
    return first


def hurt() -> None:
    """Go through the kill list."""
    no_board = ("--no-board",)
    disturb("kill -9 transform as the job begins", 10, "", lambda: kill("transform"), *no_board)
    disturb("kill -9 orchestrator while compiling", 11, "compile", lambda: kill("orchestrator"), *no_board)
    disturb("kill -9 compiler while compiling", 12, "compile", lambda: kill("compiler"), *no_board)
    disturb("kill -9 nats while compiling", 13, "compile", lambda: kill("nats"), *no_board)
    documented("build-newer", NEW_VERSION="0.1.1")
    disturb("newer build of the compiler while compiling", 14, "compile", replace_compiler, *no_board)
    disturb("kill -9 board agent while on the board", 11, "board", lambda: kill("board-sim-1"))
    disturb("restart nats while on the board", 12, "board", restart_nats)
    disturb("kill -9 everything while on the board", 13, "board", kill_all)


def choose_ports() -> None:
    """Publish on ports that are free here: somebody may have a stack of their own on the usual ones."""
    with ExitStack() as held:
        for name in ("PORT", "TRANSFORM_PORT", "COMPILER_PORT", "NATS_PORT"):
            free = held.enter_context(socket.socket())
            free.bind(("127.0.0.1", 0))
            os.environ[f"BOARDLIFT_{name}"] = str(free.getsockname()[1])


def main() -> int:
    """Do it all; the exit code says whether it held."""
    begin = float(os.environ.get("START", time.time()))
    choose_ports()
    first = bring_up(begin)
    if "verdict" in sys.argv[1:]:
        return 0
    with step("bills of materials"):
        check_bills()
    with step("rights, limits, tokens"):
        check_rights()
    with step("kill list"):
        hurt()
    with step("compiler in (a stand-in for) the vendor's image"):
        check_vendor_image()
    with step("a board joins from outside, by address and token"):
        check_board_joins()
    with step("graceful stop"):
        check_graceful_stop()
    with step("backup, loss, restore"):
        check_backup(first)
    print("kill list:\n   " + "\n   ".join(KILLS))
    print(f"all of it: {time.time() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        print(f"FAILED: {broken}", file=sys.stderr, flush=True)
        for name in PARTS:
            print(f"== {name}\n" + compose("logs", "--tail", "25", name, check=False).stdout[-3500:], file=sys.stderr)
        sys.exit(1)
