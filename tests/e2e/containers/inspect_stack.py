"""Look at running containers and their images: rights, limits, tokens, sizes, bills of materials."""

from __future__ import annotations

import json
from pathlib import Path

from operate import PARTS, SECRETS, WORK, compose, container, expect, run

IMAGES = ("nats", "orchestrator", "transform", "board-agent", "compiler", "simulated-board")
PUBLISHABLE = IMAGES[:4]
BASES = {"nats": "nats:", "orchestrator": "python:3.11", "transform": "python:3.11"}


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
        look = "command -v pip gcc cc make git curl; touch /x 2>/dev/null && echo /x can be written; true"
        found = compose("exec", "-T", part, "sh", "-c", look).stdout
        expect(not found, f"{part} has {found}")
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


def check_bills() -> None:
    """Write every image's bill of materials, and find nothing of the vendor's where it may not be."""
    vendor = ("hbdk", "horizon", "hobot", "rdkx5", "hmct", "dgdk")
    for name in IMAGES:
        bill = json.loads(run("deploy/sbom.py", f"boardlift/{name}:0.1.0").stdout)
        found = [c["name"] for c in bill["components"] if str(c["name"]).startswith(vendor)]
        python = sum(1 for c in bill["components"] if c["purl"].startswith("pkg:pypi/"))
        print(f"   boardlift/{name:16} {len(bill['components']):4} components, {python:3} of them Python", flush=True)
        expect(bool(found) == (name not in PUBLISHABLE), f"{name} holds {found}")


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
