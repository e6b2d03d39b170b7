"""Console scripts: replace this process by the toolchain's interpreter running the stand-in.

The toolchain is the virtual environment named by BOARDLIFT_TOOLCHAIN, else `.boardlift/toolchain` in the current
folder or one above it. Standard library only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_MISSING = (
    "boardlift simulated board: the vendor toolchain is not at {where}; set BOARDLIFT_TOOLCHAIN to its virtual "
    "environment (make toolchain installs it)"
)


def find_toolchain(environment: dict[str, str], start: Path) -> Path:
    """Finds the toolchain's virtual environment.

    Args:
        environment: BOARDLIFT_TOOLCHAIN wins.
        start: folder to look upwards from.

    Returns:
        The environment's folder; it need not exist.
    """
    named = environment.get("BOARDLIFT_TOOLCHAIN")
    if named:
        return Path(named)
    for folder in (start, *start.parents):
        if (folder / ".boardlift" / "toolchain" / "bin").is_dir():
            return folder / ".boardlift" / "toolchain"
    return start / ".boardlift" / "toolchain"


def main() -> None:
    """`hrt_model_exec` stand-in."""
    _exec("hrt_model_exec")


def main_sampler() -> None:
    """Latency sampler stand-in: one line of JSON per frame."""
    _exec("sample_latency")


def _exec(program: str) -> None:
    toolchain = find_toolchain(dict(os.environ), Path.cwd())
    python = toolchain / "bin" / "python"
    if not python.exists():
        print(_MISSING.format(where=toolchain), file=sys.stderr)
        raise SystemExit(127)
    bootstrap = Path(__file__).resolve().parent / "_bootstrap.py"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["PATH"] = f"{toolchain / 'bin'}:/usr/bin:/bin"
    sys.stdout.flush()
    os.execve(python, [str(python), str(bootstrap), program, *sys.argv[1:]], environment)  # noqa: S606
