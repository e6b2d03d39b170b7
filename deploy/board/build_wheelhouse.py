"""Collect every wheel a board needs into one folder that installs without a network.

    python deploy/board/build_wheelhouse.py DEST [--machine aarch64|x86_64] [--python 3.10] [--baseline]

Third-party wheels are those of `requirements/board-agent.txt`, checked by hash; what is published as source only must
be pure Python and is built here. Ours are built from the checkout. `SHA256SUMS` lists everything, `install.sh` checks.
Runs on any machine: nothing of the board's architecture is executed.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
OURS = ("client", "libs/servicekit", "services/board_agent")
GLIBC = {"aarch64": (17, 26, 27, 28, 31, 34, 35), "x86_64": (17, 26, 27, 28, 31, 34, 35)}
"""manylinux tags that fit Ubuntu 22.04 (glibc 2.35)."""
SOURCE_ONLY = ("nkeys",)
PIP = "pip==25.3"


def requirement_blocks(text: str) -> list[str]:
    """Lines of a hashed requirements file, continuation lines joined."""
    joined = text.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def select(text: str, python: str, machine: str) -> list[str]:
    """The blocks whose marker holds on the board.

    Args:
        text: hashed requirements with markers.
        python: `3.10`.
        machine: `aarch64` or `x86_64`.
    """
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.12",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "platform_machine": machine,
        "platform_system": "Linux",
        "sys_platform": "linux",
        "os_name": "posix",
    }
    chosen = []
    for block in requirement_blocks(text):
        head = block.split("--hash")[0].strip()
        marker = Requirement(head).marker
        if marker is None or marker.evaluate(environment):
            hashes = [word for word in block.split() if word.startswith("--hash")]
            chosen.append(" ".join([head.split(";")[0].strip(), *hashes]))
    return chosen


def pip(*words: str) -> None:
    """Run this interpreter's pip."""
    command = [sys.executable, "-m", "pip", *words, "--disable-pip-version-check", "--quiet"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def fetch(lines: list[str], dest: Path, python: str, machine: str) -> None:
    """Download wheels for the board."""
    tags = [word for minor in GLIBC[machine] for word in ("--platform", f"manylinux_2_{minor}_{machine}")]
    abi = f"cp{python.replace('.', '')}"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        pip(
            "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", file.name,
            "--python-version", python, "--implementation", "cp", "--abi", abi, "--abi", "abi3", "--abi", "none",
            "--platform", f"manylinux2014_{machine}", *tags, "--dest", str(dest),
        )  # fmt: skip


def build_pure(lines: list[str], dest: Path) -> None:
    """Build what is published as source only; a wheel that is not pure is an error."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text("\n".join(lines) + "\n")
        pip("wheel", "--no-deps", "--require-hashes", "--requirement", str(listed), "--wheel-dir", folder)
        for wheel in Path(folder).glob("*.whl"):
            if not wheel.name.endswith("-none-any.whl"):
                raise SystemExit(f"{wheel.name} is not pure Python: it can't be built for the board here")
            shutil.move(str(wheel), dest / wheel.name)


def build_ours(dest: Path) -> None:
    """Build our own distributions from a copy of their sources, so that the checkout stays clean."""
    with tempfile.TemporaryDirectory() as folder:
        for member in OURS:
            source = Path(folder) / member.replace("/", "_")
            leave = shutil.ignore_patterns("__pycache__", "build", "dist", "*.egg-info")
            shutil.copytree(ROOT / member, source, ignore=leave)
            pip("wheel", "--no-deps", "--wheel-dir", str(dest), str(source))


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Collect the wheels of the board agent.")
    parser.add_argument("dest", type=Path)
    parser.add_argument("--machine", choices=sorted(GLIBC), default="aarch64")
    parser.add_argument("--python", default="3.10")
    parser.add_argument("--baseline", action="store_true", help="add onnxruntime for the CPU baseline (20 MB)")
    options = parser.parse_args()
    dest: Path = options.dest
    shutil.rmtree(dest, ignore_errors=True)
    dest.mkdir(parents=True)
    lines = select((ROOT / "requirements/board-agent.txt").read_text(), options.python, options.machine)
    if options.baseline:
        wanted = ("onnxruntime", "flatbuffers", "coloredlogs", "humanfriendly", "sympy", "mpmath", "packaging")
        more = select((ROOT / "requirements/transform.txt").read_text(), options.python, options.machine)
        lines += [line for line in more if line.split("==")[0] in wanted]
    source = [line for line in lines if line.split("==")[0] in SOURCE_ONLY]
    fetch([line for line in lines if line not in source], dest, options.python, options.machine)
    build_pure(source, dest)
    build_ours(dest)
    pip("download", "--no-deps", "--only-binary=:all:", PIP, "--dest", str(dest))
    for name in ("install.sh", "boardlift-agent.service", "governor.conf", "agent.env"):
        shutil.copy(Path(__file__).with_name(name), dest / name)
    sums = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}" for p in sorted(dest.iterdir())]
    (dest / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    size = sum(p.stat().st_size for p in dest.iterdir())
    count = len(list(dest.glob("*.whl")))
    print(f"{count} wheels, {size / 1e6:.1f} MB in {dest} for {options.machine}, Python {options.python}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
