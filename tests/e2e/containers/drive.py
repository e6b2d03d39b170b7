"""Build, start, use, hurt, stop, lose and restore the stack in containers; exits with 1 when it breaks a promise.

The blocks of docs/deploy.md marked `<!-- run: NAME -->` are run as they stand there. Every job after the first one has
a calibration of its own, so that nothing but what is meant to comes from the cache.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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

IMAGES = ("nats", "orchestrator", "transform", "compiler", "simulated-board")
BASES = {"nats": "nats:", "orchestrator": "python:3.11", "transform": "python:3.11"}


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
    expect(all(n == 1 for n in counts.values()), f"run more than once to the end: {counts}")
    expect(after["verdict"]["outcome"] in ("pass", "fail", "undecided"), f"no verdict: {after['verdict']}")
    attempts = {s["stage"]: s["attempt"] for s in after["stages"] if s["attempt"] > 1}
    KILLS.append(
        f"{title:58} {after['verdict']['outcome']:9} {time.monotonic() - begin:6.1f} s  runs {counts}  more {attempts}"
    )
    print("   " + KILLS[-1], flush=True)
    compose("up", "-d", "--wait", "--no-build", "--no-recreate")


KILLS: list[str] = []


def check_rights() -> None:
    """Look from inside and outside at what the compose file promises."""
    for part in PARTS:
        facts = json.loads(run("docker", "inspect", container(part)).stdout)[0]
        host = facts["HostConfig"]
        expect(host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["Privileged"], f"{part} has rights")
        expect(
            facts["Config"]["User"] == "10001:10001" and host["Memory"] > 0 and host["NanoCpus"] > 0,
            f"{part} is unbounded",
        )
        status = Path(f"/proc/{facts['State']['Pid']}/status").read_text()
        expect("CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status, f"{part} holds capabilities")
        expect("Uid:\t10001" in status, f"{part} is another user")
    for part in ("orchestrator", "transform", "compiler", "board-sim-1"):
        tools = compose(
            "exec", "-T", part, "sh", "-c", "command -v pip gcc cc make git curl || true; touch /x 2>&1"
        ).stdout
        expect("/" not in tools.replace("touch: cannot touch '/x'", ""), f"{part} has {tools}")
    refused = run("boardlift", "jobs", "ls", check=False, BOARDLIFT_TOKEN_FILE="", BOARDLIFT_TOKEN="wrong")
    expect(refused.returncode != 0 and "TOKEN" in refused.stderr.upper(), f"a wrong token was let in: {refused}")
    board = run(
        "boardlift",
        "check",
        f"{WORK}/policy.onnx",
        check=False,
        BOARDLIFT_TOKEN_FILE=str(SECRETS / "boards/sim-1/token"),
    )
    expect(board.returncode != 0, "a board's token opened the compiler")
    out = compose(
        "exec",
        "-T",
        "board-sim-1",
        "python",
        "-c",
        "import socket; socket.create_connection(('1.1.1.1', 53), 3)",
        check=False,
    )
    expect(out.returncode != 0, "a container without published ports has a way out")


def replace_compiler() -> None:
    """Put a newer build in the place of a running container, as docs/deploy.md says."""
    old = container("compiler")
    documented("upgrade", NEW_VERSION="0.1.1")
    new = container("compiler")
    label = run(
        "docker", "inspect", "-f", '{{index .Config.Labels "org.opencontainers.image.version"}}', new
    ).stdout.strip()
    expect(old != new and label == "0.1.1", f"the compiler was not replaced: {label}")


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
    done = documented("job")
    expect("from the cache" in done and "PASS" in done, f"stages ran again after the restore: {done[-2000:]}")


def print_sizes() -> None:
    """Print each image, the part of it that is ours, and its base."""
    sizes = {}
    for line in run("docker", "images", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}").stdout.splitlines():
        name, image = line.split()
        sizes[name] = int(run("docker", "image", "inspect", "-f", "{{.Size}}", image).stdout) / 1e6
    bases = {name: size for name, size in sizes.items() if not name.startswith(("boardlift/", "<none>"))}
    print("   image                        MB    of it ours")
    for name in IMAGES:
        size = sizes[f"boardlift/{name}:0.1.0"]
        base = next(v for k, v in bases.items() if k.startswith(BASES.get(name, "python:3.10")))
        print(f"   boardlift/{name:18} {size:6.0f} {size - base:12.0f}")
    print("   bases: " + ", ".join(f"{k} {v:.0f} MB" for k, v in sorted(bases.items())), flush=True)


def main() -> int:
    """Do it all; the exit code says whether it held."""
    begin = float(os.environ.get("START", time.time()))
    with step("secrets, by docs/deploy.md"):
        run("deploy/make_secrets.py", "init", "--dir", str(SECRETS), "--name", "lab.example")
        run("deploy/make_secrets.py", "user", "alice", "--dir", str(SECRETS))
    with step("build and start, by docs/deploy.md"):
        documented("start")
    print_sizes()
    documented("look")
    with step("first job, client outside"):
        documented("client")
        told = documented("job")
        expect("PASS" in told, told[-3000:])
        first = str(json.loads(cli("jobs", "ls", "--json").stdout)[0]["id"])
    print(f"   from nothing to the verdict: {time.time() - begin:.0f} s", flush=True)
    with step("rights, limits, tokens"):
        check_rights()
    with step("kill list"):
        no_board = ("--no-board",)
        disturb("kill -9 transform as the job begins", 10, "", lambda: kill("transform"), *no_board)
        disturb("kill -9 orchestrator while compiling", 11, "compile", lambda: kill("orchestrator"), *no_board)
        disturb("kill -9 compiler while compiling", 12, "compile", lambda: kill("compiler"), *no_board)
        disturb("kill -9 nats while compiling", 13, "compile", lambda: kill("nats"), *no_board)
        disturb("newer build of the compiler while compiling", 14, "compile", replace_compiler, *no_board)
        disturb("kill -9 board agent while on the board", 11, "board", lambda: kill("board-sim-1"))
        disturb("restart nats while on the board", 12, "board", restart_nats)
        disturb("kill -9 everything while on the board", 13, "board", kill_all)
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
