"""Pin every third-party package with hashes: `requirements/<deployable>.txt` from the pyproject files.

Run by `make lock` with uv from the package index. One lock serves Python 3.10 and newer on x86-64 and arm64; no file
names a registry. Our own distributions are left out: they are installed from the checkout.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = {
    "client": "client",
    "servicekit": "libs/servicekit",
    "transform": "services/transform",
    "compiler": "services/compiler",
    "board-agent": "services/board_agent",
    "orchestrator": "services/orchestrator",
    "simulator": "simulator",
}
EXTRAS = {"client": ["cli"]}
NEEDS = {
    "transform": ["client", "servicekit"],
    "compiler": ["client", "servicekit"],
    "board-agent": ["client", "servicekit"],
    "orchestrator": ["client", "servicekit"],
}


def third_party(member: str) -> list[str]:
    """Requirements of one of our distributions and of those of ours it needs, without our own names."""
    lines: list[str] = []
    for name in [member, *NEEDS.get(member, [])]:
        lines += read_requirements(
            ROOT / OURS[name] / "pyproject.toml", EXTRAS.get(member, []) if name == member else []
        )
    return [line for line in lines if not re.match(r"boardlift\b", line)]


def read_requirements(path: Path, extras: list[str]) -> list[str]:
    """Read `dependencies` and the given extras of a pyproject file."""
    try:
        import tomllib
    except ModuleNotFoundError as error:  # locking is a developer's task; the product itself runs on 3.10
        raise SystemExit("make lock needs Python 3.11 or newer") from error
    project = tomllib.loads(path.read_text())["project"]
    found = list(project.get("dependencies", []))
    for extra in extras:
        found += project.get("optional-dependencies", {}).get(extra, [])
    return found


def lock(name: str, requirements: list[str], *, universal: bool = True) -> None:
    """Resolve and write `requirements/<name>.txt`."""
    target = ROOT / "requirements" / f"{name}.txt"
    command = [
        str(Path(sys.executable).parent / "uv"),
        "pip",
        "compile",
        "-",
        "--generate-hashes",
        "--no-header",
        "--quiet",
    ]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "-o", str(target)]
    command += ["-c", "requirements/constraints.txt"]
    command += ["--universal", "--python-version", "3.10"] if universal else []
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    subprocess.run(
        command, input="\n".join(sorted(set(requirements))), text=True, check=True, cwd=ROOT, env=environment
    )
    text = target.read_text()
    if "://" in text:
        raise SystemExit(f"{target.name} names an address; it must not")
    print(f"{target.relative_to(ROOT)}: {len(re.findall(r'^[A-Za-z0-9]', text, re.M))} packages")


def main() -> None:
    """Lock everything that exists."""
    everything: list[str] = []
    for member in OURS:
        if not (ROOT / OURS[member] / "pyproject.toml").is_file() or member in ("servicekit", "simulator"):
            continue
        wanted = third_party(member)
        everything += wanted
        lock(member, wanted)
    lock("dev", everything + read_lines("dev.in"))
    lock("gen", read_lines("gen.in"))
    lock("build", read_lines("build.in"))


def read_lines(name: str) -> list[str]:
    """Read the requirements of a file that people write."""
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return [line for line in lines if line and line[0] != "#"]


if __name__ == "__main__":
    main()
