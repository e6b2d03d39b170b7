"""Work the stack in containers from outside: compose, the public command, kills, logs.

Everything comes from the environment that `run.sh` has prepared: WORK, BOARDLIFT_SECRETS, DOCKER_HOST, PATH.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WORK = Path(os.environ["WORK"])
SECRETS = Path(os.environ["BOARDLIFT_SECRETS"])
FILE = ROOT / "deploy/compose.yaml"
PARTS = ("nats", "orchestrator", "transform", "compiler", "board-sim-1")


class Broken(Exception):
    """The stack did not do what it promises."""


def expect(holds: bool, what: str) -> None:
    """Stop with `what` when it does not hold."""
    if not holds:
        raise Broken(what)


def run(*command: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed."""
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise Broken(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done


def compose(*words: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `docker compose` on the one file."""
    return run("docker", "compose", "-f", str(FILE), *words, check=check, **more)


def documented(name: str, **more: str) -> str:
    """Run a block of docs/deploy.md; variables it exports stay set."""
    text = (ROOT / "docs/deploy.md").read_text()
    found = re.search(rf"<!-- run: {name} -->\n```sh\n(.*?)```", text, re.S)
    expect(found is not None, f"docs/deploy.md has no block {name}")
    script = f"set -eu\n{found.group(1) if found else ''}\nenv -0 >{WORK}/environment"
    done = run("bash", "-c", script, **more)
    for pair in (WORK / "environment").read_bytes().split(b"\0"):
        key, _, value = pair.decode().partition("=")
        if key.startswith("BOARDLIFT_"):
            os.environ[key] = value
    return done.stdout


def cli(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the public command."""
    return run("boardlift", *words, check=check)


def submit(number: int, *words: str) -> str:
    """Submit a job that shares no compile with another number; returns its id."""
    command = ["run", f"{WORK}/policy.onnx", "--data", f"{WORK}/data.npz", "--outputs", "actions", "--variant", "int8"]
    command += [
        "--calibration",
        "max",
        "--percentile",
        f"0.999{number:02d}",
        "--frames",
        "100",
        "--name",
        f"kill-{number}",
    ]
    told = cli(*command, *words, "--detach", "--json").stdout
    return str(json.loads(told)["id"])


def show(job: str) -> dict:
    """Return a job as the client shows it; asks again while the server is away."""
    for _ in range(120):
        done = cli("jobs", "show", job, "--json", check=False)
        if done.returncode in (0, 1, 5) and done.stdout.startswith("{"):
            return dict(json.loads(done.stdout))
        time.sleep(0.5)
    raise Broken(f"{job} can't be looked at: {done.stderr[-500:]}")


def stage(job: dict, name: str) -> dict:
    """Return one stage of a job."""
    return next((s for s in job["stages"] if s["stage"] == name), {"state": "absent", "attempt": 0})


def wait_running(job: str, name: str, seconds: float = 300) -> None:
    """Wait until a stage runs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = stage(show(job), name)["state"]
        if state == "running":
            return
        expect(state != "succeeded", f"{name} of {job} ended before it could be disturbed")
        time.sleep(0.2)
    raise Broken(f"{name} of {job} did not start in {seconds} s")


def wait_end(job: str, seconds: float = 900) -> dict:
    """Wait for the end of a job and expect success."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = show(job)
        if found["state"] not in ("queued", "running", "pending"):
            expect(found["state"] == "succeeded", f"{job} ended {found['state']}: {json.dumps(found)[:3000]}")
            return found
        time.sleep(1)
    raise Broken(f"{job} did not end in {seconds} s: {json.dumps(show(job)['stages'])[:3000]}")


def kill(part: str) -> None:
    """Kill a container's processes from outside, as a crash or the kernel would; the engine starts it again."""
    pid = run("docker", "inspect", "-f", "{{.State.Pid}}", container(part)).stdout.strip()
    os.kill(int(pid), 9)


def container(part: str) -> str:
    """Name of the container of a part."""
    return compose("ps", "--all", "-q", part).stdout.split()[0]


def logged(part: str) -> list[dict]:
    """Return the log of a part as far as it is JSON, restarts included."""
    lines = compose("logs", "--no-log-prefix", part).stdout.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def finished_runs(job: str) -> dict[str, int]:
    """How often a tool ran each stage of a job to its end; answers from stored results and late joiners are no runs."""
    counts: dict[str, int] = {}
    for line in logged("compiler"):
        if line.get("job") == job and line.get("event") == "run_ended":
            counts[line["stage"]] = counts.get(line["stage"], 0) + 1
    for line in logged("board-sim-1"):
        if line.get("job") == job and line.get("event") == "stage_ended" and not line.get("cached"):
            counts["board"] = counts.get("board", 0) + 1
    return counts
