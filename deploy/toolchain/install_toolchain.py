"""Install the vendor toolchain for RDK X5 into a folder of its own.

Usage: ``install_toolchain.py DEST [--probe]``. Standard library only, any Python >= 3.8.

Makes a Python 3.10 environment at DEST, installs the hash-pinned ``requirements.txt`` beside this file without
dependencies, writes import placeholders for the four heavy packages the ONNX path names but never computes with, and
proves the result by running ``hb_mapper --version``. Running it again on a finished DEST changes nothing.

Exit codes: 0 installed (or already there), 1 the installation failed, 3 this machine cannot run the toolchain.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
PLACEHOLDER_SOURCE = HERE / "placeholder.py"
STAMP_NAME = "boardlift-toolchain.json"
EXPECTED_VERSION = "1.24.3"

PLACEHOLDERS = {
    "torch": (),
    "torch.nn": (),
    "torch.onnx": ("register_custom_op_symbolic",),
    "torch.onnx.symbolic_helper": ("parse_args",),
    "torch.onnx.symbolic_opset9": ("parse_args",),
    "matplotlib": ("use",),
    "matplotlib.pyplot": (),
    "matplotlib.ticker": (),
    "matplotlib.colors": (),
    "matplotlib.patches": (),
    "matplotlib.cm": (),
    "paramiko": (),
    "paramiko.channel": (),
    "skimage": (),
    "skimage.transform": (),
    "skimage.io": (),
}
"""Module name -> names that the vendor calls while importing and that may do nothing."""
SILENT = ("matplotlib.pyplot",)
"""Modules whose every call may do nothing: `bias_correction` plots while it works."""


class CannotInstall(Exception):
    """This machine cannot run the toolchain; the message is one line and says what to do."""


class InstallFailed(Exception):
    """The machine qualifies but the installation went wrong; the message says where."""


def say(text: str) -> None:
    """Print one line of progress to standard error."""
    print(f"boardlift: {text}", file=sys.stderr, flush=True)


def require_machine() -> None:
    """Refuse anything but 64-bit x86 Linux with glibc.

    Raises:
        CannotInstall: with one line that names what is missing.
    """
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        raise CannotInstall(
            f"the vendor's toolchain is for x86-64 Linux and this machine is {machine} {system};"
            " point the compiler client at a machine that has it (the other stages work here)"
        )
    if platform.libc_ver(sys.executable)[0] not in ("glibc", ""):
        raise CannotInstall("the vendor's wheels need glibc (Debian, Ubuntu, Fedora ...), not musl")


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and keep its output."""
    return subprocess.run(command, text=True, capture_output=True, check=False, **options)  # type: ignore[call-overload]


def is_python310(path: str) -> bool:
    """Tell whether a path is a Python 3.10 that can make environments."""
    try:
        done = run([path, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"], timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == "3.10"


def find_uv() -> str | None:
    """Return the uv program beside this interpreter or on PATH."""
    beside = Path(sys.executable).parent / "uv"
    return str(beside) if beside.exists() else shutil.which("uv")


def python310_candidates() -> list[str]:
    """Return places where a Python 3.10 may be, best first."""
    found = [os.environ.get("BOARDLIFT_TOOLCHAIN_PYTHON", ""), shutil.which("python3.10") or "", sys.executable]
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    for root in filter(None, roots):
        found += [str(p / "bin" / "python3.10") for p in sorted(Path(root).glob("versions/3.10*"), reverse=True)]
    return [p for p in found if p]


def find_python310() -> str:
    """Return a Python 3.10 that can make environments; fetches one through uv as the last resort.

    Raises:
        CannotInstall: when there is none and uv is absent or cannot fetch it.
    """
    for candidate in python310_candidates():
        if is_python310(candidate):
            return candidate
    uv = find_uv()
    if uv is None:
        raise CannotInstall(
            "no Python 3.10 found (the vendor's wheels are cp310); install it (`apt install python3.10-venv`,"
            " `pyenv install 3.10` or `pip install uv`) or set BOARDLIFT_TOOLCHAIN_PYTHON"
        )
    if run([uv, "python", "find", "3.10"]).returncode != 0:
        say("no Python 3.10 on this machine, fetching one with uv")
        fetched = run([uv, "python", "install", "3.10"])
        if fetched.returncode != 0:
            reason = (fetched.stderr.strip().splitlines() or ["no output"])[-1]
            raise CannotInstall(f"no Python 3.10 found and uv could not fetch one: {reason}")
    path = run([uv, "python", "find", "3.10"]).stdout.strip()
    if not is_python310(path):
        raise CannotInstall(f"the Python 3.10 that uv found at {path} cannot make environments")
    return path


def recipe_digest() -> str:
    """Return a digest of everything that decides what gets installed."""
    digest = hashlib.sha256()
    for path in (REQUIREMENTS, PLACEHOLDER_SOURCE):
        digest.update(path.read_bytes())
    digest.update(json.dumps([PLACEHOLDERS, SILENT], sort_keys=True).encode())
    return digest.hexdigest()


def write_placeholders(site_packages: Path) -> None:
    """Write one small module per name in PLACEHOLDERS unless the real package is installed."""
    shutil.copyfile(PLACEHOLDER_SOURCE, site_packages / "boardlift_placeholder.py")
    for name, harmless in PLACEHOLDERS.items():
        top = site_packages / name.split(".")[0]
        if list(site_packages.glob(f"{top.name}-*.dist-info")):
            continue
        folder = site_packages.joinpath(*name.split("."))
        folder.mkdir(parents=True, exist_ok=True)
        made = "silent(__name__)" if name in SILENT else f"resolver(__name__, {harmless!r})"
        text = f"from boardlift_placeholder import resolver, silent\n\n__getattr__ = {made}\n"
        (folder / "__init__.py").write_text(text, encoding="utf-8")


def probe(dest: Path) -> str:
    """Return the version ``hb_mapper --version`` prints, running it the way the compiler service does.

    Raises:
        InstallFailed: when it does not start or prints something else.
    """
    tool = dest / "bin" / "hb_mapper"
    environment = {"PATH": f"{dest / 'bin'}:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    try:
        done = run([str(tool), "--version"], env=environment, timeout=180)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallFailed(f"{tool} does not start: {error}") from error
    words = done.stdout.strip().split()
    if done.returncode != 0 or len(words) < 3 or "version" not in words:
        tail = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise InstallFailed(f"{tool} --version ended with {done.returncode}: {tail}")
    return words[-1]


def already_installed(dest: Path) -> bool:
    """True when DEST holds this very recipe, or someone else's working installation (left as it is)."""
    if not (dest / "bin" / "hb_mapper").exists():
        return False
    stamp = dest / STAMP_NAME
    if stamp.exists():
        try:
            recorded = json.loads(stamp.read_text(encoding="utf-8"))
        except ValueError:
            return False
        return isinstance(recorded, dict) and recorded.get("recipe") == recipe_digest()
    try:
        version = probe(dest)
    except InstallFailed:
        return False
    say(f"{dest} was not made by this recipe but runs hb_mapper {version}: left as it is")
    return True


def clear_destination(dest: Path) -> None:
    """Remove an unfinished or outdated installation; never anything that is not a Python environment."""
    if not dest.exists():
        return
    if any(dest.iterdir()) and not (dest / "pyvenv.cfg").exists():
        raise InstallFailed(f"{dest} is not empty and not a Python environment: refusing to delete it")
    shutil.rmtree(dest)


def install(dest: Path) -> str:
    """Build the environment at DEST and return the version it reports. The stamp is written last."""
    python = find_python310()
    clear_destination(dest)
    say(f"installing the toolchain into {dest} (about 200 MB to fetch, 570 MB on disk)")
    made = run([python, "-m", "venv", str(dest)])
    if made.returncode != 0:
        raise InstallFailed(f"{python} -m venv failed: {(made.stderr or made.stdout).strip()}")
    inner = str(dest / "bin" / "python")
    pip = [inner, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet", "--no-deps"]
    done = run([*pip, "--no-compile", "--require-hashes", "--only-binary", ":all:", "-r", str(REQUIREMENTS)])
    if done.returncode != 0:
        raise InstallFailed("pip install failed:\n" + "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:]))
    site_packages = next((dest / "lib").glob("python3.10/site-packages"))
    write_placeholders(site_packages)
    version = probe(dest)
    stamp = {"recipe": recipe_digest(), "hb_mapper": version, "python": python}
    (dest / STAMP_NAME).write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
    return version


def main(argv: list[str] | None = None) -> int:
    """Install or probe; returns the exit code."""
    parser = argparse.ArgumentParser(description="Install the RDK X5 toolchain into its own folder.")
    parser.add_argument("dest", type=Path, help="folder of the environment, e.g. .boardlift/toolchain")
    parser.add_argument("--probe", action="store_true", help="only say whether DEST works")
    arguments = parser.parse_args(argv)
    dest = arguments.dest.expanduser().absolute()
    started = time.monotonic()
    try:
        if arguments.probe:
            say(f"toolchain hb_mapper {probe(dest)} at {dest}")
            return 0
        require_machine()
        dest.parent.mkdir(parents=True, exist_ok=True)
        with (dest.parent / f".{dest.name}.lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if already_installed(dest):
                say(f"toolchain already installed at {dest}")
                return 0
            version = install(dest)
    except CannotInstall as error:
        say(f"no toolchain: {error}")
        return 3
    except (InstallFailed, OSError) as error:
        say(f"toolchain installation failed: {error}")
        return 1
    say(f"toolchain hb_mapper {version} installed at {dest} in {time.monotonic() - started:.0f} s")
    if version != EXPECTED_VERSION:
        say(f"note: this recipe was proven with hb_mapper {EXPECTED_VERSION}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
